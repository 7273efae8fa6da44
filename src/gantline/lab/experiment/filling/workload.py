"""The pods and nodes of a filling experiment, as Alibaba published them in 2023 (``openb_pod_list_*.csv``, ``openb_node_list_*.csv``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import near
from gantline.policies.placement.parts.fragments import Shape
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.read import RawTable

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
