"""Gavel, Figure 11: hierarchical fairness, three entities with weights 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.engine.assembly.models import job_types
from gantline.lab.experiment.grid import Case, Grid
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale
from gantline.systems.gavel.policies.allocation import effective_throughput
from gantline.systems.gavel.policies.instance import Entity, Instance
from gantline.systems.gavel.policies.shares import proportional_throughput
from gantline.systems.gavel.policies.water_filling import water_filling
from gantline.systems.gavel.studies.workload import GavelStudy, as_published
from gantline.traces.files.throughputs import read_throughputs

_WEIGHTS = (1.0, 2.0, 3.0)
_JOBS, _EVERY = 18, 4  # a job comes every four steps
_TYPES = ("k80", "p100", "v100")


class GavelHierarchy(GavelStudy):
    """Which owner gets which part of the cluster while jobs of three owners arrive one after the other."""

    name: ClassVar[str] = "gavel-hierarchy"
    figure: ClassVar[str] = "Figure 11: parts of the total effective throughput under hierarchical fairness, three entities"
    what: ClassVar[str] = (
        "18 jobs of one GPU on 3 V100, 3 P100 and 3 K80; a job arrives every four steps, first six of an entity with weight 1, then six of "
        "one with weight 2, then six of one with weight 3; fairness inside. The table has each entity's part of the sum of normalised "
        "throughputs as the policy divides it at that step; the runs replay the same jobs (six hours on a V100 each) in rounds."
    )

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "an entity alone has everything": ClaimTerms("the whole cluster", "0.1 %"),
        "with all jobs there, entities share by weight": ClaimTerms("1/6, 2/6, 3/6", "0.02 of the whole"),
        "inside an entity jobs are equal": ClaimTerms("each other", "5 %"),
        "weights move time between owners, not away": ClaimTerms("equal weights", "mean JCT at most 10 % longer"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        policies = tuple(
            as_published(name, "max_min_fairness_water_filling_perf", entities=entities)
            for name, entities in (("weights 1:2:3", "e0=1,e1=2,e2=3"), ("equal weights", "e0=1,e1=1,e2=1"))
        )
        base = self.setting("small", {"jobs": _JOBS, "entities": 3, "duration": 21600.0, "mean_gap": 0.0}, cluster="v100:3,p100:3,k80:3")
        return Grid(base, policies, seeds=tuple(range(3 if scale == "full" else 2))).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        parts, spread = self._parts(_JOBS)
        alone = self._parts(6)[0]
        mean = {name: float(np.mean(rows["jct_mean"].to_numpy())) for (name,), rows in results.group_by("policy")}
        change = mean["weights 1:2:3"] / mean["equal weights"]
        near = bool(np.allclose(parts, np.array(_WEIGHTS) / sum(_WEIGHTS), atol=0.02))
        return [
            Claim("an entity alone has everything", "everything", f"{100 * alone[0]:.0f} %", bool(alone[0] > 0.999)),
            Claim(
                "with all jobs there, entities share by weight",
                "1/6, 2/6, 3/6",
                ", ".join(f"{part:.3f}" for part in parts),
                near,
                is_number=True,
            ),
            Claim("inside an entity jobs are equal", "equal", f"at most {100 * spread:.1f} % apart", spread < 0.05),
            Claim("weights move time between owners, not away", "–", f"mean JCT {change:.2f} times that of equal weights", change < 1.1),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        steps = [_EVERY * jobs for jobs in range(2, _JOBS + 1, 2)]
        parts = [self._parts(step // _EVERY)[0] for step in steps]
        return pl.DataFrame({"step": steps} | {f"weight {w:g}": [float(part[k]) for part in parts] for k, w in enumerate(_WEIGHTS)})

    @cached_property
    def _speeds(self) -> Floats:
        """Steps per second of the 18 jobs on every type."""
        setting = self.cases("small")[0].setting
        table = read_throughputs(self.needed())
        trace = setting.trace.with_throughputs(str(setting.throughputs)).load(0)
        rows = np.array([table.key(*name) for name in job_types(trace)], dtype=np.int64)
        return table.alone(rows, _TYPES)

    def _parts(self, jobs: int) -> tuple[Floats, float]:
        """Each entity's part of the sum of normalised throughputs with so many jobs there, and the largest spread inside one."""
        owner = np.arange(jobs) // (_JOBS // len(_WEIGHTS))
        entities = tuple(Entity(f"e{k}", weight) for k, weight in enumerate(_WEIGHTS))
        instance = Instance.of(types=_TYPES, capacity=[3, 3, 3], throughput=self._speeds[:jobs], entities=entities, entity=owner)
        got = effective_throughput(instance, water_filling(instance)) / proportional_throughput(instance)
        inside = [got[owner == k] for k in np.unique(owner)]
        spread = max(float(values.max() / values.min() - 1) for values in inside)
        return np.array([got[owner == k].sum() for k in range(len(_WEIGHTS))]) / got.sum(), spread
