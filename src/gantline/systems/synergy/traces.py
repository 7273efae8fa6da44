"""What Synergy's simulator (OSDI 2022) reads: replay files, and profiles, which a performance model is made of, too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.models.sensitivity import MeasuredEpochs, Networks, PerGpu, Sensitivity, SensitivityProfile
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace

# Replay files of Synergy's simulator (OSDI 2022): ``job_id,model,arrival_s,iterations,num_gpu`` without a header line.
#
# The profiles say how long a step takes at the proportional share of a server's CPUs and memory, and with that how long a job is.


_COLUMNS = ("job_id", "model", "arrival", "iterations", "num_gpu")


def read(
    src: Path,
    *,
    profiles: Annotated[Path | None, "the folder with model_profiles.csv and throughput_matrix.csv"] = None,
    cpus: Annotated[float, "CPUs per GPU of the servers whose profiles say how long a step takes"] = 3.0,
    memory: Annotated[float, "GB per GPU of these servers"] = 62.5,
    storage: Annotated[float, "MB/s from storage per GPU of these servers"] = 62.5,
) -> Trace:
    """The jobs of a replay file; times are kept as they are."""
    if profiles is None:
        raise UsageError("steps have no length without profiles", where="format 'synergy'", fix="give --profiles DIR")
    networks = read_profiles(profiles).on((cpus, memory, storage))
    raw = read_foreign(src, (), columns=_COLUMNS)
    model = text(raw, "model")
    for row, name in enumerate(model.to_list()):
        if name not in networks:
            raise raw.error(f"there is no profile of '{name}'", row=row, field="model", fix=near(name, networks))
    steps = number(raw, "iterations", required=True)
    if (steps <= 0).any():
        row = int((steps <= 0).arg_true()[0])
        raise raw.error(f"the job has {steps[row]:g} iterations", row=row, field="iterations", fix="give one or more, or drop the row")
    step_time = model.replace_strict({name: known.step_time for name, known in networks.items()}, return_dtype=pl.Float64)
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_id"),
            "arrival": number(raw, "arrival", required=True),
            "gpus": number(raw, "num_gpu", required=True),
            "duration": steps * step_time,
            "model": model,
            "iterations": steps,
            "iteration_time": step_time,
        }
    )
    return Sieve(frame, raw).finish(from_zero=False)


# Synergy's profiles, as tables, and the performance model that is made of them.

# Synergy's profiles, as tables: what each network needs and gains, and its throughput over CPUs and memory.
#
# ``model_profiles.csv`` has a row per set, number of GPUs and network, ``throughput_matrix.csv`` a row per cell. A set
# belongs to servers with so many CPUs per GPU: `models` to 3, `models-4` to 4. Only the profiles of one GPU are read,
# as in the original: those of two and four GPUs have memory columns without a size.
#
# In their place or beside them, ``epochs.csv`` tells how long an epoch takes by CPUs with all its data in memory, and
# how much it reads; the profile is then computed for the servers of the cluster.


_BEST = ("best_cpus_per_gpu", "best_mem_GB_per_gpu", "speedup_at_best", "iter_time_s_at_fair_share")
_CELL = ("cpus_per_gpu", "mem_GB_per_gpu", "normalised_throughput")
_KEY = ("profile_set", "gpus_in_profile", "model")
_USUAL_CPUS = 3.0
_PROFILES, _EPOCHS = "model_profiles.csv", "epochs.csv"
_EPOCH = ("cpus_per_gpu", "epoch_s", "data_GB", "memory_MBps", "steps")


@dataclass(frozen=True, eq=False)
class SynergyProfiles:
    """The networks of each set; a set is named by the CPUs per GPU of the servers that it was measured on."""

    sets: Mapping[float, Networks]
    epochs: Mapping[str, MeasuredEpochs]
    folder: str

    def on(self, share: PerGpu) -> Networks:
        """The profiles of servers that have so much for each GPU."""
        computed = {name: SensitivityProfile.computed(times, share) for name, times in self.epochs.items()}
        cpus_per_gpu = share[0]
        for known, networks in self.sets.items():
            if math.isclose(known, cpus_per_gpu):
                return {**networks, **computed}
        if not self.sets:
            return computed
        has = ", ".join(f"{known:g}" for known in sorted(self.sets))
        what = f"there are no profiles of servers with {cpus_per_gpu:g} CPUs per GPU"
        raise RefusedError(what, where=f"profiles {self.folder}", fix=f"use a cluster with {has} CPUs per GPU, such as 4x8/24c/500g")


def read_profiles(folder: Path) -> SynergyProfiles:
    """The profiles in a folder."""
    epochs = _epochs(folder / _EPOCHS) if (folder / _EPOCHS).is_file() else {}
    if epochs and not (folder / _PROFILES).is_file():
        return SynergyProfiles({}, epochs, str(folder))
    grids = _grids(_table(folder, "throughput_matrix.csv", _CELL))
    raw = _table(folder, _PROFILES, _BEST)
    sets: dict[float, dict[str, SensitivityProfile]] = {}
    for row, (each, model, best) in enumerate(_rows(raw, _BEST)):
        networks = sets.setdefault(_cpus_of(each), {})
        if model in networks:
            raise raw.error(f"'{model}' has two rows in set '{each}'", row=row, fix="leave one of them out")
        cells = grids.get((each, model), {})
        cpus, memory = (sorted({at[axis] for at in cells}) for axis in (0, 1))
        if not cells or len(cells) < len(cpus) * len(memory):
            what = f"the cells of '{model}' in throughput_matrix.csv are no full grid: {len(cells)} of {len(cpus) * len(memory)}"
            raise raw.error(what, row=row, fix="add what is missing, or leave the row out")
        speed = np.array([[cells[c, m] for m in memory] for c in cpus])
        networks[model] = SensitivityProfile(model, np.array(cpus), np.array(memory), speed, best[0], best[1], best[2], best[3])
    return SynergyProfiles(sets, epochs, str(folder))


def _grids(raw: RawTable) -> dict[tuple[str, str], dict[tuple[float, float], float]]:
    """(set, network) -> the speed at so many CPUs and so much memory per GPU."""
    grids: dict[tuple[str, str], dict[tuple[float, float], float]] = {}
    for row, (each, model, (cpus, memory, speed)) in enumerate(_rows(raw, _CELL)):
        grid = grids.setdefault((each, model), {})
        if grid.get((cpus, memory), speed) != speed:
            raise raw.error(f"'{model}' has two speeds with {cpus:g} CPUs and {memory:g} GB", row=row, fix="leave one of the rows out")
        grid[cpus, memory] = speed
    return grids


def _epochs(file: Path) -> dict[str, MeasuredEpochs]:
    """Network -> its epochs by CPUs; what an epoch reads and its steps are the same in all rows of a network."""
    raw = read_foreign(file, ("model", *_EPOCH))
    rows: dict[str, list[tuple[float, ...]]] = {}
    for row, (_, model, (cpus, seconds, *rest)) in enumerate(_rows(raw, _EPOCH)):
        others = rows.setdefault(model, [])
        if any(other[0] == cpus for other in others):
            raise raw.error(f"'{model}' has two rows with {cpus:g} CPUs", row=row, fix="leave one of them out")
        if others and list(others[0][2:]) != rest:
            what = f"'{model}' reads {rest[0]:g} GB in {rest[2]:g} steps here, and other amounts above"
            raise raw.error(what, row=row, fix="give one amount of data, one bandwidth and one number of steps per network")
        others.append((cpus, seconds, *rest))
    found = {}
    for model, measured in rows.items():
        table = np.array(sorted(measured))
        found[model] = MeasuredEpochs(model, table[:, 0], table[:, 1], *measured[0][2:])
    return found


def _table(folder: Path, name: str, columns: tuple[str, ...]) -> RawTable:
    """The rows of one GPU, each with the line of the file."""
    if not (folder / name).is_file():
        fix = "name the folder with model_profiles.csv and throughput_matrix.csv"
        raise NotFoundError(f"holds no {name}", where=f"profiles {folder}", fix=fix)
    raw = read_foreign(folder / name, (*_KEY, *columns))
    one = number(raw, "gpus_in_profile", required=True) == 1
    rows = one.arg_true().to_list()
    return RawTable(raw.frame.filter(one), raw.source, lambda: [raw.line(row) for row in rows], raw.header_line)


def _rows(raw: RawTable, columns: tuple[str, ...]) -> list[tuple[str, str, tuple[float, ...]]]:
    """Set, network and the numbers in these columns, all of which must be above zero."""
    numbers = [number(raw, column, required=True) for column in columns]
    for found in numbers:
        bad = found <= 0
        if bad.any():
            row = int(bad.arg_true()[0])
            raise raw.error(f"{found[row]:g} is not above zero", row=row, field=found.name)
    values = zip(*(found.to_list() for found in numbers))
    return list(zip(text(raw, "profile_set").to_list(), text(raw, "model").to_list(), values))


def _cpus_of(name: str) -> float:
    """The CPUs per GPU of the servers of a set: the number behind its name."""
    tail = name.rpartition("-")[2]
    return float(tail) if tail.isdecimal() and name != tail else _USUAL_CPUS


# The model behind `--performance sensitivity --profiles DIR`: profiles in Synergy's layout for the servers of a cluster.

_WHERE = "--performance sensitivity"


def make_model(jobs: Trace, cluster: Cluster, profiles: object = None) -> Sensitivity:
    """The model of a run; every node with GPUs must say how many CPUs and how much memory it has."""
    if not isinstance(profiles, SynergyProfiles):
        raise UsageError("no profiles are given", where=_WHERE, fix="give --profiles DIR")
    share: dict[int, PerGpu] = {}
    for node in cluster.nodes:
        if not node.gpus:
            continue
        if not node.cpus or not node.memory:
            what = f"node '{node.name}' does not say how many CPUs and how much memory it has"
            raise RefusedError(what, where=_WHERE, fix="use a cluster such as 4x8/24c/500g")
        each = (node.cpus / node.gpus, node.memory / node.gpus, node.storage / node.gpus)
        if share.setdefault(cluster.types.index(node.type), each) != each:
            what = f"nodes of type '{node.type}' differ in CPUs, memory or storage per GPU"
            raise RefusedError(what, where=_WHERE, fix="give them types of their own")
    return Sensitivity({kind: profiles.on(each) for kind, each in share.items()}, share, _asked(jobs))


def _asked(jobs: Trace) -> dict[str, PerGpu]:
    """What the trace says that jobs ask for, per GPU."""
    frame = jobs.frame
    none = [math.nan] * len(frame)
    amounts = [frame[name].to_list() if name in frame.columns else none for name in ("cpus", "memory", "storage")]
    rows = zip(frame["job"].to_list(), frame["gpus"].to_list(), zip(*amounts))
    return {job: tuple((amount or math.nan) / gpus for amount in said) for job, gpus, said in rows if gpus}
