"""Pollux (Qiao et al., OSDI 2021), section 5.3: average completion times in its own simulator against the load."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gantline.core.errors import NotFoundError
from gantline.lab.experiment.reproduction import (
    Case,
    Claim,
    Grid,
    PolicyChoice,
    Scale,
    Setting,
    Study,
    TraceSource,
    claim_terms,
    mean_by_policy,
)

JOBS = "trace.jobs"
WORKLOADS = (3, 5)
LOADS = (80, 160)
#: mean seconds of these workloads as published with the artifact, by jobs in eight hours
PUBLISHED: dict[str, dict[int, dict[int, float]]] = {
    "pollux": {80: {5: 976.8, 3: 1310.5}, 160: {5: 2673.7, 3: 2188.5}},
    "tiresias": {80: {5: 1425.4, 3: 1869.9}, 160: {5: 3501.0, 3: 3876.3}},
    "optimus": {80: {5: 1324.5, 3: 1986.8}, 160: {5: 5656.2, 3: 3944.0}},
}
WITHIN = {"pollux": 0.03, "tiresias": 0.0005, "optimus": 0.0005}


class PolluxLoad(Study):
    """Pollux, Optimus with an oracle and Tiresias on the published workloads."""

    name = "pollux-load"
    paper = "Qiao et al.: Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning (OSDI 2021)"
    figure = "Section 5.3: average JCT at half and at full load, 16 nodes of four T4"
    what = (
        "Workloads 3 and 5 of those published with the artifact, made again by the generator, in the regime of its simulator. Tiresias and "
        "Optimus are deterministic and end every job in the published second. Pollux draws random numbers that cannot be had again: the "
        "published run is one more draw."
    )
    load = JOBS
    load_unit = "jobs"
    needs = "philly_jobs.csv.gz"
    needs_from = "the branch osdi21-artifact of the repository petuum/adaptdl, with its profiles beside it"

    terms = claim_terms(
        {
            "Pollux has the lowest average JCT": ("the better of Tiresias and Optimus", "at least 5 % lower, in every run"),
            "pollux, seconds": ("the published run of each workload", "3 %: another draw of random numbers"),
            "tiresias, seconds": ("the published run of each workload", "0.05 %"),
            "optimus, seconds": ("the published run of each workload", "0.05 %"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        source = TraceSource(generator="pollux", settings={"table": str(self.needed())})
        base = Setting(source, "aws:16x4", "pollux", regime="pollux", profiles=str(self._profiles()))
        search = {} if scale == "full" else {"generations": 10, "size": 50}
        policies = (PolicyChoice("pollux", search, "pollux"), PolicyChoice("tiresias"), PolicyChoice("optimus"))
        return Grid(base, policies, vary={JOBS: LOADS}, seeds=WORKLOADS if scale == "full" else WORKLOADS[1:]).cases()

    @property
    def ready(self) -> bool:
        return super().ready and self._find_profiles() is not None

    def _find_profiles(self) -> Path | None:
        """The folder of profiles, in the data or beside it."""
        if self.data is None:
            return None
        places = [*self.data.rglob("cifar10/placements*.csv"), *self.data.parent.glob("*/profiles/cifar10/placements*.csv")]
        return min(places).parents[1] if places else None

    def _profiles(self) -> Path:
        found = self._find_profiles()
        if found is None:
            raise NotFoundError(f"no profiles under {self.data}", where=f"reproduce {self.name}", fix=f"get them from {self.needs_from}")
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = results.select("policy", JOBS, "seed", "jct_mean").iter_rows()
        mean = {(policy, int(jobs), int(seed)): float(value) for policy, jobs, seed, value in rows}
        places = sorted({(jobs, seed) for _, jobs, seed in mean})
        gains = [1 - mean["pollux", *place] / min(mean["tiresias", *place], mean["optimus", *place]) for place in places]
        text = f"{100 * min(gains):.0f} to {100 * max(gains):.0f} % below"
        claims = [Claim("Pollux has the lowest average JCT", "below both in all runs", text, min(gains) > 0.05)]
        for policy, published in PUBLISHED.items() if scale == "full" else ():
            off = {(jobs, seed): mean[policy, jobs, seed] / published[jobs][seed] - 1 for jobs, seed in places}
            worst = max(off, key=lambda place: abs(off[place]))
            shown = ", ".join(f"{published[jobs][seed]:,.0f}" for jobs, seed in places)
            found = ", ".join(f"{mean[policy, *place]:,.0f}" for place in places)
            holds = abs(off[worst]) <= WITHIN[policy]
            claims.append(Claim(f"{policy}, seconds", shown, f"{found} ({100 * off[worst]:+.1f} % at worst)", holds, is_number=True))
        return claims

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return mean_by_policy(results, JOBS).rename({JOBS: "jobs"})
