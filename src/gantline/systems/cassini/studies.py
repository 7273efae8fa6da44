"""CASSINI (Rajasekaran et al., NSDI 2024), section 5: a host policy with and without it on a network that is too narrow for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.intervals import change_interval
from gantline.lab.experiment.reproduction import Case, Claim, Grid, PolicyChoice, Scale, Setting, Study, TraceSource, claim_terms

_CLUSTER = "24x1@2/rack,tree:6.25/6.25"
_VARIANTS = ("random", "host", "cassini", "ideal")
_ABOVE = "none: the 95 % interval of the change, seed by seed, lies above zero"
_MIXED, _RELATED = "mixed", "related"  # whether the periods of jobs are multiples of one another
_JOBS = {_MIXED: 15, _RELATED: 20}
_FEW = 3  # seeds at the small scale
_SETTING = (
    "24 servers with one GPU each in 12 racks of two, 6.25 GB/s from a server and from a rack, which is 2 : 1 over-subscribed; jobs of "
    "2 to 8 workers of six kinds that communicate 30 to 50 % of an iteration, a minute apart. Links are divided by max-min fairness. In "
    "the mixed workload (15 jobs) the periods of the kinds are unrelated, in the related one (20 jobs) they are multiples of 0.1 s. "
    "Random is FIFO with random placement. Starts and moves cost nothing. "
    "The table has the mean seconds that jobs hold devices, which follow the mean iteration, as the "
    "work of a job is given. The paper's testbed and models are not ours: the claims are inequalities for these workloads. "
)


class CassiniLeafSpine(Study):
    """Themis, with CASSINI on top, and on links that are wide enough for all; FIFO with random placement."""

    name = "cassini-leaf-spine"
    paper = "Rajasekaran et al.: CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters (NSDI 2024)"
    figure = "Section 5: completion times of a host policy, with CASSINI, and without contention"
    what = _SETTING + (
        "The host is Themis, as in the paper, which offers its leases on other devices as candidates. Host and terms were chosen on seeds "
        "300 to 307; the seeds of the table were run once, after that."
    )
    host = "themis"
    placement: ClassVar[str | None] = None  # Themis names devices itself
    seeds: ClassVar[Mapping[str, tuple[int, ...]]] = {_MIXED: tuple(range(400, 410)), _RELATED: tuple(range(500, 510))}
    load = "seed"

    terms = claim_terms(
        {
            "jobs run longer under the host policy than with CASSINI": ("with CASSINI", _ABOVE),
            "and longer with CASSINI than on links that are wide enough": ("ideal", _ABOVE),
            "random placement is worst": ("host", _ABOVE),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        found: list[Case] = []
        for periods, seeds in self.seeds.items():
            source = TraceSource(generator="periodic", settings={"jobs": _JOBS[periods], "periods": periods})
            shared = Setting(source, _CLUSTER, self.host, performance="shared-links")
            placed = shared.with_value("placement", self.placement)
            variants = {
                "random": (shared.with_value("placement", "random"), PolicyChoice("fifo", {}, "random")),
                "host": (placed, PolicyChoice(self.host, {}, "host")),
                "cassini": (shared, PolicyChoice("cassini", {"host": self.host}, "cassini")),
                "ideal": (placed.with_value("performance", None), PolicyChoice(self.host, {}, "ideal")),
            }
            few = seeds if scale == "full" else seeds[:_FEW]
            for base, choice in variants.values():
                found += Grid(base, (choice,), seeds=few).cases()
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        run = self.table(results)
        pairs = dict(zip(self.terms, (("host", "cassini"), ("cassini", "ideal"), ("random", "host"))))
        return [
            self._longer(run.filter(pl.col("seed").is_in(seeds)), f"{periods}: {statement}", *pair)
            for periods, seeds in self.seeds.items()
            for statement, pair in pairs.items()
        ]

    @staticmethod
    def _longer(run: pl.DataFrame, statement: str, one: str, other: str) -> Claim:
        """Whether jobs run longer in one way than in another, seed by seed."""
        change = change_interval(run[other].to_numpy(), run[one].to_numpy())
        found = f"by {100 * change.value:.2f} % ({100 * change.low:.2f} to {100 * change.high:.2f} %), {change.samples} seeds"
        return Claim(statement, "longer", found, change.known and change.low > 0.0)

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        run = results.with_columns(run=pl.col("jct_mean") - pl.col("queueing_mean"))
        return run.pivot("policy", index="seed", values="run").select("seed", *_VARIANTS).sort("seed")


class CassiniFirstCome(CassiniLeafSpine):
    """The same on top of FIFO, which offers no candidates and never moves a job."""

    name = "cassini-first-come"
    what = _SETTING + (
        "The host is FIFO with compact placement: candidates are drawn for jobs that start, and jobs that run stay where they are. The "
        "mixed workload was laid down first; the related one was added after its result was known, with seeds of its own."
    )
    host = "fifo"
    placement: ClassVar[str | None] = "consolidated:preferred"
    seeds: ClassVar[Mapping[str, tuple[int, ...]]] = {_MIXED: tuple(range(100, 110)), _RELATED: tuple(range(200, 210))}
