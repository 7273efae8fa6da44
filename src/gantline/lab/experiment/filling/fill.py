"""The filling experiment: pods come one by one, are placed for ever or fail, and curves say how well the GPUs are used.

The question of Weng et al., "Beware of Fragmentation" (ATC 2023), section 6: how much of the GPUs is in use when pods have asked for 130 %
of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.experiment.filling.curves import curves
from gantline.lab.experiment.filling.scheme import find_scheme
from gantline.lab.experiment.filling.workload import FillNodes, FillPods, read_nodes, read_pods
from gantline.policies.placement.parts.filling import Arrivals, Filled
from gantline.policies.placement.parts.filling import fill as fill_nodes
from gantline.policies.placement.parts.fragments import PartNodes, accepted_models, shape_columns, typical_mix
from gantline.policies.placement.parts.scores import NOISE, PART_RULES, Scoring

_BEYOND = 100.0
"""A load above that is a mistake, and would take long."""


@dataclass(frozen=True)
class FilledCluster:
    """What a filling found."""

    nodes: FillNodes
    pods: FillPods
    order: Ints  # arrivals, as places in the list of pods
    node_order: Ints
    filled: Filled

    @cached_property
    def curves(self) -> pl.DataFrame:
        """`arrived`, `alloc`, `frag`, `frag_of_idle` in 131 bins, in per cent."""
        return curves(self.asked, self.filled.used, self.filled.fragments, self.nodes.capacity)

    @property
    def asked(self) -> Floats:
        """GPU that pods have asked for after each arrival, failed ones too, in thousandths."""
        return np.cumsum(self.pods.requests[self.order]).astype(np.float64)

    @property
    def failed(self) -> int:
        return int((self.filled.node < 0).sum())

    @cached_property
    def placements(self) -> pl.DataFrame:
        """`pod`, `node` (empty: it failed) and `device` (of pods with a part), in the order of arrival."""
        names = [self.nodes.name[at] for at in self.node_order]
        return pl.DataFrame(
            {
                "pod": [self.pods.name[at] for at in self.order],
                "node": [names[at] if at >= 0 else None for at in self.filled.node.tolist()],
                "device": [at if at >= 0 else None for at in self.filled.device.tolist()],
            },
            schema={"pod": pl.String, "node": pl.String, "device": pl.Int64},
        )


def fill(
    pods: str | Path,
    cluster: str | Path,
    placement: str = "fgd",
    *,
    tune: float = 1.3,
    seed: int = 42,
    tie: float = NOISE,
    compat: str = "",
) -> FilledCluster:
    """Fill a cluster with pods until they have asked for `tune` times its GPUs.

    `tie`: of nodes whose scores (0 to 100) are closer than that to the best the first is taken. `compat="fgd"` repeats the published runs.
    """
    if placement not in PART_RULES:
        raise NotFoundError(f"no rule '{placement}' for parts of GPUs", where="--placement", fix=near(placement, PART_RULES))
    if not 0.0 < tune <= _BEYOND:
        raise UsageError(f"{tune:g} is not a load", where="--tune", fix=f"1.3: so many times the GPUs, {_BEYOND:g} at most")
    if not 0.0 <= tie <= 100.0:
        raise UsageError(f"{tie:g} is not a difference of scores", where="--tie", fix="from 0 to 100, such as 1")
    scheme = find_scheme(compat)
    nodes = read_nodes(Path(cluster))
    listed = read_pods(Path(pods), nodes)
    models = sorted(set(nodes.model))
    accepts = accepted_models(models)
    parts = np.array([shape.part for shape in listed.shape])
    order = scheme.order(listed.requests, parts, tune * nodes.capacity, len(nodes.name), seed)
    shapes = sorted(set(listed.shape))
    place = {shape: at for at, shape in enumerate(shapes)}
    shape_of = np.array([place[shape] for shape in listed.shape], dtype=np.int64)
    draws = np.random.default_rng([seed, 1]).random((2, len(order.pods)))
    at = order.nodes
    model = np.array([models.index(nodes.model[node]) for node in at], dtype=np.int64)
    idle = PartNodes.idle(nodes.cpu[at], nodes.memory[at], nodes.gpus[at], model, scheme.most_pods)
    most_cpu = scheme.most_cpu or float(nodes.cpu.max())
    most_gpu = scheme.most_gpu or 1000.0 * float(nodes.gpus.max())
    filled = fill_nodes(
        Scoring(PART_RULES[placement], scheme.published, most_cpu, most_gpu),
        idle,
        Arrivals(shape_of[order.pods], listed.memory[order.pods], draws),
        shape_columns(shapes, accepts),
        typical_mix(listed.shape, accepts),
        tie,
    )
    return FilledCluster(nodes, listed, order.pods, at, filled)
