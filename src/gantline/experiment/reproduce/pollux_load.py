"""Pollux (Qiao et al., OSDI 2021), section 5.3: average completion times in its own simulator against the load."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import polars as pl

from gantline.core.errors import NotFoundError
from gantline.experiment.grid import Case, Grid, PolicyChoice
from gantline.experiment.reproduce.study import Claim, Scale, Study
from gantline.experiment.setting import Setting
from gantline.experiment.source import TraceSource

JOBS = "trace.jobs"
WORKLOADS = tuple(range(1, 9))
#: mean seconds over the eight workloads, as published with the artifact, by jobs in eight hours
PUBLISHED: dict[str, dict[int, float]] = {
    "pollux": {80: 1534, 160: 2751, 240: 3685, 320: 5289},
    "tiresias": {80: 2092, 160: 4038, 240: 6182, 320: 10040},
    "optimus": {80: 2395, 160: 5682, 240: 7235, 320: 9721},
}
WITHIN = {"pollux": 0.015, "tiresias": 0.0005, "optimus": 0.0005}


class PolluxLoad(Study):
    """Pollux, Optimus with an oracle and Tiresias on the published workloads."""

    name: ClassVar[str] = "pollux-load"
    paper: ClassVar[str] = "Qiao et al.: Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning (OSDI 2021)"
    figure: ClassVar[str] = "Section 5.3: average JCT at loads of 0.5 to 2.0, 16 nodes of four T4, eight workloads"
    what: ClassVar[str] = (
        "The workloads published with the artifact, made again by the generator, in the regime of its simulator. Tiresias and Optimus are "
        "deterministic and end every job in the published second. Pollux draws random numbers that cannot be had again: the published run "
        "is one more draw."
    )
    load: ClassVar[str] = JOBS
    load_unit: ClassVar[str] = "jobs"
    needs: ClassVar[str] = "philly_jobs.csv.gz"
    needs_from: ClassVar[str] = "the branch osdi21-artifact of the repository petuum/adaptdl, with its profiles beside it"

    def cases(self, scale: Scale) -> list[Case]:
        source = TraceSource(generator="pollux", settings={"table": str(self.needed())})
        base = Setting(source, "aws:16x4", "pollux", regime="pollux", profiles=str(self._profiles()))
        search = {} if scale == "full" else {"generations": 25}
        policies = (PolicyChoice("pollux", search, "pollux"), PolicyChoice("tiresias"), PolicyChoice("optimus"))
        loads, seeds = ((80, 160, 240, 320), WORKLOADS) if scale == "full" else ((80,), (3, 5))
        return Grid(base, policies, vary={JOBS: loads}, seeds=seeds).cases()

    def _profiles(self) -> Path:
        data = self.data or Path()
        found = next(iter(sorted(data.rglob("cifar10/placements*.csv"))), None)
        if found is None:
            raise NotFoundError(f"no profiles under {data}", where=f"reproduce {self.name}", fix=f"get them from {self.needs_from}")
        return found.parents[1]

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        mean = {
            (policy, int(jobs)): float(value)
            for policy, jobs, value in results.group_by("policy", JOBS).agg(pl.col("jct_mean").mean()).iter_rows()
        }
        loads = sorted({jobs for _, jobs in mean})
        gains = [1 - mean["pollux", jobs] / min(mean["tiresias", jobs], mean["optimus", jobs]) for jobs in loads]
        told = ", ".join(f"{100 * gain:.0f} %" for gain in gains)
        claims = [Claim("Pollux has the lowest average JCT", "27 to 46 % below", f"{told} below", min(gains) > 0.2)]
        for policy, points in PUBLISHED.items():
            if scale != "full":
                continue
            off = {jobs: mean[policy, jobs] / points[jobs] - 1 for jobs in loads}
            worst = max(off, key=lambda jobs: abs(off[jobs]))
            claims.append(
                Claim(
                    f"{policy} at {', '.join(map(str, loads))} jobs",
                    ", ".join(f"{points[jobs]:,.0f}" for jobs in loads) + " s",
                    f"{', '.join(f'{mean[policy, jobs]:,.0f}' for jobs in loads)} s ({100 * off[worst]:+.1f} % at worst)",
                    abs(off[worst]) <= WITHIN[policy],
                    is_number=True,
                )
            )
        return claims

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = results.group_by("policy", JOBS).agg(pl.col("jct_mean").mean().round(1)).sort(JOBS, "policy")
        return means.pivot("policy", index=JOBS, values="jct_mean").rename({JOBS: "jobs"})
