"""The cluster, the jobs and the names of Gavel's simulations (OSDI 2020, section 7): 36 V100, 36 P100, 36 K80."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from gantline.lab.experiment.grid import PolicyChoice
from gantline.lab.experiment.reproduction import Claim, Scale, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource

LOAD = "trace.jobs_per_hour"
CLUSTER = "v100:36,p100:36,k80:36"
SMALL = "v100:8,p100:8,k80:8"
WITHIN = 0.05  # of the numbers that the authors stored with their program
PAPER = "Narayanan et al.: Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads (OSDI 2020)"


class GavelStudy(Study):
    """Base of the studies on Gavel's jobs: speeds are those that the authors measured."""

    paper: ClassVar[str] = PAPER
    needs: ClassVar[str] = "simulation_throughputs.json"
    needs_from: ClassVar[str] = "the simulator folder of the repository stanford-futuredata/gavel"
    load: ClassVar[str] = LOAD
    load_unit: ClassVar[str] = "jobs/h"

    def setting(self, scale: Scale, jobs: Mapping[str, Any], **more: Any) -> Setting:
        """A run of Gavel's simulator; the small scale has fewer devices."""
        source = TraceSource(generator="gavel", settings=dict(jobs))
        cluster = more.pop("cluster", CLUSTER if scale == "full" else SMALL)
        return Setting(source, cluster, "gavel.isolated", regime="gavel", throughputs=str(self.needed()), **more)


def as_published(name: str, policy: str, **settings: Any) -> PolicyChoice:
    """A policy by the rules of the artifact, under the name that the figure gives it."""
    return PolicyChoice(f"gavel.{policy}", {"compat": "gavel", **settings}, name)


def hours(results: pl.DataFrame, axis: str, column: str = "jct_mean") -> dict[str, dict[float, float]]:
    """Mean hours over seeds of every policy at every place of the axis."""
    means = results.group_by("policy", axis, maintain_order=True).agg((pl.col(column) / 3600).mean().alias("value"))
    found: dict[str, dict[float, float]] = {}
    for policy, place, value in means.sort(axis).iter_rows():
        found.setdefault(policy, {})[float(place)] = float(value)
    return found


def table_of(results: pl.DataFrame, axis: str, column: str = "jct_mean") -> pl.DataFrame:
    """Hours, a row per place of the axis, a column per policy."""
    rows = hours(results, axis, column)
    places = sorted({place for values in rows.values() for place in values})
    return pl.DataFrame(
        {axis.rpartition(".")[2].replace("_", " "): places} | {name: [v.get(p) for p in places] for name, v in rows.items()}
    )


def ahead(
    statement: str, found: Mapping[str, Mapping[float, float]], better: str, worse: str, published: str, at_least: float = 1.0
) -> Claim:
    """One policy has lower numbers than another at the largest common place of the axis, by that factor at least."""
    place = max(set(found[better]) & set(found[worse]))
    factor = found[worse][place] / found[better][place]
    return Claim(statement, published, f"{factor:.2f} times at {place:g}", factor >= at_least)


def near_stored(found: Mapping[str, Mapping[float, float]], stored: Mapping[str, Mapping[float, float]], unit: str) -> list[Claim]:
    """Numbers against those that the authors stored, a claim per policy."""
    claims = []
    for policy, points in stored.items():
        both = {place: (value, found[policy][place]) for place, value in points.items() if place in found.get(policy, {})}
        if both:
            worst = max(both, key=lambda place: abs(both[place][1] / both[place][0] - 1))
            theirs, ours = both[worst]
            text = f"{100 * (ours / theirs - 1):+.1f} % at worst ({worst:g} {unit}: {ours:.2f})"
            holds = abs(ours / theirs - 1) <= WITHIN
            shown = ", ".join(f"{value:g}" for value, _ in both.values())
            claims.append(Claim(f"{policy} at {', '.join(f'{p:g}' for p in both)} {unit}", f"{shown} h", text, holds, is_number=True))
    return claims
