"""Where the estimates of a simulation come from, such as oracle, noisy, limit, history, boosted or none; one chain for all policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import HIGH, LOW, Job
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.policy import Source
from gantline.core.rng import stream
from gantline.core.tables import Tables
from gantline.models.boosted_estimates import BoostedEstimates

MODES = {
    "oracle": "the true amount of work",
    "noisy": "noisy:S multiplies the truth by a log-normal factor with sigma S, drawn once per job",
    "declared": "what the trace declares: the truth, off by the relative error in its columns gpu_err, cpu_err or <type>_err",
    "sampled": "sampled:S is what two short runs on each device type show, each off by a normal error with sigma S",
    "limit": "the time limit that the job was submitted with (column time_limit); the longest of all where a job has none",
    "history": "the mean of finished jobs of the same user, model and size; else of the same size; else of all; else an hour",
    "boosted": "a model that people can inspect, fitted to finished jobs: an explainable boosting machine (interpret), or a simpler sum",
    "none": "nothing is known: policies that need remaining work are refused",
}
_HOUR = 3600.0


#: where what is missing would be given, and how
_CURES = {
    "remaining": ("--estimates", "use --estimates oracle, noisy:0.3, history, boosted or limit"),
    "carbon": ("--carbon", "give --carbon FILE.csv"),
    "prices": ("--prices", "give --prices TYPE=DOLLARS per device-hour"),
    "power": ("--power", "give --power TYPE=BUSY/IDLE in watts"),
    "some-deadline": ("trace", "give jobs a deadline, or use another objective"),
}


@dataclass(frozen=True)
class Estimates:
    """A way to estimate total work."""

    mode: str = "oracle"
    sigma: float = 0.0

    @cached_property
    def _boosted(self) -> BoostedEstimates:
        """Fitted again from what has ended."""
        return BoostedEstimates()

    @property
    def source(self) -> Source:
        known = {
            "oracle": Source.ORACLE,
            "noisy": Source.DECLARED,
            "declared": Source.DECLARED,
            "sampled": Source.PROFILED,
            "limit": Source.DECLARED,
        }
        return known.get(self.mode, Source.SIMILAR if self.learns else Source.DEFAULT)

    @property
    def learns(self) -> bool:
        """Whether estimates depend on what has finished, so that they are made on arrival."""
        return self.mode in ("history", "boosted")

    def __str__(self) -> str:
        return f"{self.mode}:{self.sigma:g}" if self.mode in ("noisy", "sampled") else self.mode

    def fill(self, tables: Tables, seed: int) -> None:
        """Estimate all rows at once (the modes that do not learn); what differs by device type is filled in by the simulator."""
        F = tables.F
        if self.mode in ("oracle", "declared", "sampled"):
            F[Job.ESTIMATE] = F[Job.WORK]
        elif self.mode == "noisy":
            factor = np.exp(stream(seed, 0, "estimates").normal(0.0, self.sigma, F.shape[1]))
            F[Job.ESTIMATE] = np.maximum(F[Job.WORK] * factor, 1.0)
            note_range(
                tables, np.arange(F.shape[1]), F[Job.ESTIMATE] * np.exp(-2.0 * self.sigma), F[Job.ESTIMATE] * np.exp(2.0 * self.sigma)
            )
        else:
            F[Job.ESTIMATE] = _HOUR

    def on_arrival(self, tables: Tables, rows: Ints) -> None:
        """Estimate newly arrived rows from what has finished so far."""
        F, I = tables.F, tables.I
        if self.mode == "boosted":
            found = self._boosted.estimate(tables, rows, float(F[Job.ARRIVAL][rows].max()))
            F[Job.ESTIMATE, rows] = np.where(np.isnan(found), _HOUR, np.maximum(found, 1.0))
            return
        ended = np.flatnonzero(~np.isnan(F[Job.FINISH]))
        for row in rows.tolist():
            pool = ended
            same_size = pool[I[Job.GPUS][pool] == I[Job.GPUS, row]]
            alike = same_size[(I[Job.USER][same_size] == I[Job.USER, row]) & (I[Job.MODEL][same_size] == I[Job.MODEL, row])]
            for candidates in (alike, same_size, pool):
                if len(candidates):
                    seen = F[Job.WORK][candidates]
                    F[Job.ESTIMATE, row] = seen.mean()
                    note_range(tables, np.array([row]), seen.min(), seen.max())
                    break
            else:
                F[Job.ESTIMATE, row] = _HOUR

    def summary(self) -> dict[str, object]:
        """What the summary says of a model that was fitted."""
        return {"estimator": self._boosted.summary()} if self.mode == "boosted" and self._boosted.fits else {}

    def provide(self, policy_name: str, needs: frozenset[str], provided: frozenset[str]) -> None:
        """Refuse a policy whose needs cannot be met, saying what is missing."""
        have = provided | (frozenset() if self.mode == "none" else frozenset({"remaining"}))
        missing = sorted(needs - have)
        if missing:
            where, cure = next((_CURES[name] for name in _CURES if name in missing), ("--estimates", "give a throughput table or options"))
            raise RefusedError(f"policy '{policy_name}' needs {', '.join(missing)}, which this run does not provide", where=where, fix=cure)


def note_range(tables: Tables, rows: Ints, low: Any, high: Any) -> None:
    """Between which values the work of these rows is thought to lie; policies read `jobs.estimate_low` and `jobs.estimate_high`."""
    for name, value in ((LOW, low), (HIGH, high)):
        tables.metric(name)[rows] = value


def find_estimates(text: str) -> Estimates:
    """The mode that a name with its option means."""
    mode, _, option = text.partition(":")
    if mode in ("noisy", "sampled"):
        try:
            sigma = float(option or {"noisy": 0.3, "sampled": 0.1}[mode])
        except ValueError:
            sigma = -1.0
        if not sigma >= 0:
            raise UsageError(f"noise '{option}' is not a number of zero or more", where="--estimates", fix=f"write {mode}:0.3")
        return Estimates(mode, sigma)
    if mode not in MODES or option:
        raise NotFoundError(f"no estimates '{text}'", where="--estimates", fix=near(mode, MODES))
    return Estimates(mode)
