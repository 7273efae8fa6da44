"""The filling experiment: pods come one by one, are placed for ever or fail, and curves say how well the GPUs are used.

The question of Weng et al., "Beware of Fragmentation" (ATC 2023), section 6: how much of the GPUs is in use when pods have asked for 130 %
of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.policies.placement.parts.filling import Arrivals, Filled
from gantline.policies.placement.parts.filling import fill as fill_nodes
from gantline.policies.placement.parts.fragments import PartNodes, Shape, accepted_models, shape_columns, typical_mix
from gantline.policies.placement.parts.scores import NOISE, PART_RULES, Scoring
from gantline.registry import Register
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.read import RawTable

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


# In which order pods come and nodes are looked at, and how scores are counted: ours, or that of a published experiment.
#
# A system brings its own under the kind `fillings` of its manifest: ``fillings={"fgd": ".scheme:SCHEME"}``.

_SCHEMES = Register("fillings", {}, where="--compat")


class FillOrder(NamedTuple):
    """Pods by their place in the list, some more than once or not at all; nodes from the one that wins ties on."""

    pods: Ints
    nodes: Ints


@dataclass(frozen=True)
class FillScheme:
    """Pods are shuffled and then drawn until they ask for what is wanted; nodes stay in the order of their names; scores are real."""

    published: bool = False
    """Whether scores are those of the published program."""
    most_cpu: float = 0.0
    """What CPU is measured by, in thousandths; 0: the CPU of the largest node."""
    most_gpu: float = 0.0
    most_pods: int = 2**31

    def order(self, requests: Ints, part: Floats, target: float, nodes: int, seed: int) -> FillOrder:
        """`requests` are the GPU of each pod in all, `part` that of one of its devices; `target` is what all pods shall ask for."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(requests))
        asked = int(requests.sum())
        if asked > target:
            keep = int(np.searchsorted(np.cumsum(requests[order]), target, side="right"))
            return FillOrder(order[:keep], np.arange(nodes))
        drawn = []
        while asked:
            pod = int(rng.integers(len(requests)))
            asked += int(requests[pod])
            if asked > target:
                break
            drawn.append(pod)
        return FillOrder(np.concatenate([order, np.array(drawn, dtype=np.int64)]), np.arange(nodes))


def find_scheme(name: str) -> FillScheme:
    """The scheme of that name; empty: ours."""
    found: FillScheme = _SCHEMES.load(name) if name else FillScheme()
    return found


# The pods and nodes of a filling experiment, as Alibaba published them in 2023 (``openb_pod_list_*.csv``, ``openb_node_list_*.csv``).

_WHOLE = 1000


@dataclass(frozen=True)
class FillNodes:
    """Nodes in the order of their names."""

    name: list[str]
    cpu: Floats  # thousandths
    memory: Floats  # MiB
    gpus: Ints
    model: list[str]

    @property
    def capacity(self) -> float:
        """All GPUs, in thousandths."""
        return float(_WHOLE * self.gpus.sum())


@dataclass(frozen=True)
class FillPods:
    """Pods in the order of their names."""

    name: list[str]
    shape: list[Shape]
    memory: Floats

    @property
    def requests(self) -> Ints:
        """GPU in all, in thousandths."""
        return np.array([shape.gpus * shape.part for shape in self.shape], dtype=np.int64)


def read_nodes(src: Path) -> FillNodes:
    """``sn,cpu_milli,memory_mib,gpu,model``; nodes without GPUs are left out, as the authors do."""
    raw = read_foreign(src, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))
    frame = pl.DataFrame([text(raw, "sn"), text(raw, "model"), *(_amount(raw, name) for name in ("cpu_milli", "memory_mib", "gpu"))])
    _refuse_twice(raw, frame["sn"])
    frame = frame.filter(pl.col("gpu") > 0).sort("sn")
    if frame.is_empty():
        raise raw.error("no node has GPUs", field="gpu", fix="give the list of GPU nodes")
    cpu, memory, gpus = (frame[name].to_numpy() for name in ("cpu_milli", "memory_mib", "gpu"))
    return FillNodes(frame["sn"].to_list(), cpu, memory, gpus.astype(np.int64), frame["model"].to_list())


def read_pods(src: Path, nodes: FillNodes) -> FillPods:
    """``name,cpu_milli,memory_mib,num_gpu,gpu_milli`` and, where there is one, ``gpu_spec``: models joined by ``|``."""
    raw = read_foreign(src, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))
    amounts = {name: _amount(raw, name) for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")}
    frame = pl.DataFrame([text(raw, "name"), text(raw, "gpu_spec").alias("gpu_spec"), *amounts.values()])
    _refuse_twice(raw, frame["name"])
    known = set(nodes.model)
    for row, (spec, gpus, part) in enumerate(frame.select("gpu_spec", "num_gpu", "gpu_milli").rows()):
        if gpus != int(gpus):
            raise raw.error(f"{gpus:g} is not a whole number of GPUs", row=row, field="num_gpu", fix="parts stand in gpu_milli")
        if gpus > 0 and not 0 < part <= _WHOLE:
            raise raw.error(f"{part:g} thousandths of each GPU", row=row, field="gpu_milli", fix="from 1 to 1000")
        if gpus > 1 and part < _WHOLE:
            raise raw.error(f"{gpus:g} GPUs and {part:g} thousandths of each", row=row, field="gpu_milli", fix="1000: parts are of one GPU")
        if spec and known.isdisjoint(spec.split("|")):
            raise raw.error(f"no node has model '{spec}'", row=row, field="gpu_spec", fix=near(spec, sorted(known)))
    frame = frame.sort("name")
    rows = frame.select("cpu_milli", "gpu_milli", "num_gpu", "gpu_spec").rows()
    shapes = [Shape(cpu, part if gpus else 0.0, int(gpus), spec if gpus else "") for cpu, part, gpus, spec in rows]
    return FillPods(frame["name"].to_list(), shapes, frame["memory_mib"].to_numpy())


def _amount(raw: RawTable, name: str) -> pl.Series:
    found = number(raw, name, required=True)
    below = (found < 0).arg_true()
    if len(below):
        raise raw.error(f"{found[int(below[0])]:g} is below zero", row=int(below[0]), field=name, fix="give an amount")
    return found


def _refuse_twice(raw: RawTable, names: pl.Series) -> None:
    again = (~names.is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        raise raw.error(f"'{names[row]}' stands here twice", row=row, field=names.name, fix="give each its own name")


# Curves of a filling: GPU in use and fragments, against how much has been asked for, in per cent of all GPUs.

BINS = 131


def curves(asked: Floats, used: Floats, fragments: Floats, capacity: float) -> pl.DataFrame:
    """Means over the pods after which so many per cent had been asked for; rounded as the authors' tables are.

    A bin without a pod takes those of its two neighbours; where these have none either, it has no value.
    """
    arrived = 100.0 * asked / capacity
    alloc = np.round(100.0 * used / capacity, 2)
    idle = capacity - used
    of_idle = np.round(np.divide(100.0 * fragments, idle, out=np.zeros_like(idle), where=idle > 0), 2)
    at = np.round(arrived).astype(np.int64)
    rows: list[tuple[int, float | None, float | None, float | None]] = []
    for bin in range(BINS):
        here = at == bin
        if not here.any():
            here = np.abs(at - bin) <= 1
        if not here.any():
            rows.append((bin, None, None, None))
            continue
        share = 100.0 * np.round(fragments[here], 2).mean() / capacity
        rows.append((bin, float(np.round(alloc[here].mean(), 2)), float(np.round(share, 2)), float(of_idle[here].mean())))
    schema = {"arrived": pl.Int64, "alloc": pl.Float64, "frag": pl.Float64, "frag_of_idle": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
