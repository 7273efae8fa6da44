"""The summary of a run: one flat dictionary with everything needed to read and to repeat it."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np

import gantline
from gantline.core.arrays import Bools, Floats, Ints, Ints32
from gantline.core.cluster import Cluster
from gantline.core.columns import Device, Job, Node
from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds
from gantline.core.inputs import NodeEvent
from gantline.core.jit import kernel
from gantline.core.phases import COMPLETED, FUTURE
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.registry import find_imitation
from gantline.engine.log import Interval
from gantline.models.estimate_chain import Estimates
from gantline.models.model import overrides
from gantline.policies.admission.rules import AdmissionRule
from gantline.policies.placement.rules import PlacementRule
from gantline.simulator.run_columns import Held, busy_by_device, busy_seconds, held_by_job
from gantline.traces.trace import Trace


# --- from when to when a run is measured --------------------------------------------------------------------------------
def end_of(simulation: Simulation) -> float:
    """When the last job finished or gave its devices back; while a job is unfinished, when the run was stopped.

    A loop in rounds looks once more at the next boundary: that is when the end was noticed, not the end.
    """
    state = simulation.state
    F, log = state.tables.F, state.log
    known = np.fmax.reduce(F[Job.FINISH], initial=-np.inf), np.fmax.reduce(log.LF[Interval.END, : log.intervals], initial=-np.inf)
    last = float(max(known))
    unfinished = bool((state.tables.I[Job.PHASE] < COMPLETED).any())
    return max(state.now, last) if unfinished or last == -np.inf else last


def stretch_of(simulation: Simulation, end: float) -> tuple[float, float]:
    """The time that the figures of the cluster cover: the whole run, or from the first tracked arrival to the last tracked finish."""
    F, I = simulation.state.tables.F, simulation.state.tables.I
    if not F.shape[1]:
        return 0.0, end
    if simulation.track is None:
        return float(F[Job.ARRIVAL][0]), end
    rows = slice(*simulation.track)
    last = np.fmax.reduce(F[Job.FINISH, rows], initial=-np.inf)
    unfinished = bool((I[Job.PHASE, rows] < COMPLETED).any())
    return float(F[Job.ARRIVAL, rows].min()), end if unfinished or last == -np.inf else float(last)


# --- jobs before the steady state: MSER-5 (White, Cobb and Spratt, Winter Simulation Conference 2000) -------------------
BATCH = 5
AUTO: Literal["auto"] = "auto"


def mser5(values: Floats) -> int:
    """How many of the first values to leave out."""
    count = len(values) // BATCH
    if count < 4:
        return 0
    means = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    left = np.arange(count, 0, -1)
    total, squares = (np.cumsum(part[::-1])[::-1] for part in (means, means**2))
    uncertainty = (squares - total**2 / left) / left**2
    return BATCH * int(np.argmin(uncertainty[: count // 2 + 1]))


def counted_rows(rows: tuple[int, int], warmup: float | str, arrival: Floats, waited: Floats) -> tuple[int, int]:
    """The rows [low, high) that count: those of `rows` that arrive later than the warm-up after the first job of all.

    `waited`: how long each job waited in all; NaN for one that did not finish.
    """
    low, high = rows
    if warmup == AUTO:
        ended = low + np.flatnonzero(np.isfinite(waited[low:high]))
        left_out = mser5(waited[ended])
        return (int(ended[left_out]), high) if left_out else rows
    first = int(np.searchsorted(arrival, arrival[0] + float(warmup), side="left")) if arrival.size else 0
    if first >= high:
        what = f"all jobs arrive within the warm-up of {human_seconds(float(warmup))}"
        raise UsageError(what, where="--warmup", fix="give a shorter one")
    return max(low, first), high


# --- the summary --------------------------------------------------------------------------------------------------------


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def summarise(
    simulation: Simulation,
    policy: Policy,
    trace: Trace,
    cluster: Cluster,
    estimates: Estimates,
    placement: PlacementRule,
    admission: AdmissionRule,
    seed: int,
    held: Held | None = None,
) -> dict[str, object]:
    """Figures over the tracked jobs (all, without a window) that finished; None where there are none.

    `held`: what jobs held, where that is known already.
    """
    state, engine = simulation.state, simulation.engine
    F, I = state.tables.F, state.tables.I
    low, high = simulation.track or (0, F.shape[1])
    rows = slice(low, high)
    arrival, ended = F[Job.ARRIVAL, rows], ~np.isnan(F[Job.FINISH, rows])
    finish, jct = _where(ended, F[Job.FINISH, rows]), _where(ended, F[Job.FINISH, rows] - arrival)
    respond = F[Job.MARK, rows] - arrival
    respond = _where(~np.isnan(respond), respond)
    finished_all = finish if simulation.track is None else F[Job.FINISH][~np.isnan(F[Job.FINISH])]
    middle, p95, p99 = (np.median(jct), *np.percentile(jct, (95, 99))) if len(jct) else (None, None, None)
    regime = state.regime
    end = end_of(simulation)
    held = what_jobs_held(simulation) if held is None else held
    joined = _joined(simulation, end)
    settings = {item.name: getattr(policy, item.name) for item in fields(policy)}
    return {
        "policy": policy.name or type(policy).__name__,
        "settings": settings,
        "cluster": str(cluster),
        "gpus": cluster.gpus,
        "node_gpus": _sizes(state.tables.cluster),
        **_types(state.tables.cluster),
        **_racks(state.tables.cluster),
        **_names(state.tables.cluster),
        "regime": regime.name,
        "round": regime.round,
        "placement": placement.name,
        "admission": admission.name,
        "estimates": str(estimates),
        "seed": seed,
        "jobs": int(F.shape[1]),
        "tracked": len(arrival),
        "track": list(simulation.track) if simulation.track else None,
        "completed": len(finished_all),
        "completed_tracked": len(jct),
        "unfinished": int(np.count_nonzero(I[Job.PHASE, rows] < COMPLETED)),
        "bounded": bool(math.isfinite(simulation.until)),
        "average_jct": _number(jct.mean()) if len(jct) else None,
        "median_jct": _number(middle),
        "p95_jct": _number(p95),
        "p99_jct": _number(p99),
        "max_jct": _number(jct.max()) if len(jct) else None,
        "makespan": _number(finish.max() - arrival.min()) if len(jct) else None,
        "average_queueing": _number((jct - _where(ended, held.seconds[rows])).mean()) if len(jct) else None,
        "waited": _waited(simulation, rows),
        "average_responsiveness": _number(respond.mean()) if len(respond) else None,
        "utilization": _utilization(simulation, cluster, joined, end),
        "gpu_hours": float(held.device_seconds[rows].sum()) / 3600.0,
        "work_lost": float(F[Job.LOST].sum()),
        "preemptions": int(I[Job.PREEMPTIONS].sum()),
        "free_stops": state.costs.free,
        **_wholes_for_parts(state.tables, policy),
        "restarts": int(I[Job.RESTARTS].sum()),
        "rounds": int(state.now / regime.round + 0.5) + 1 if regime.round > 0 else 0,
        "decisions": engine.decisions,
        "loop": simulation.loop.name,
        "loop_refused": simulation.loop.refused,
        "lost_turns": engine.turns.total,
        "slow_commits": engine.grants.slow_commits,
        "incidents": len(engine.incidents),
        "notices": len(engine.notices),
        **({"in_charge": [(one.since, one.policy, one.why) for one in engine.in_charge]} if engine.in_charge else {}),
        "end": end,
        "trace": trace.source,
        "trace_hash": trace.hash,
        "log_hash": state.log.hash(),
        "version": gantline.__version__,
        "down_gpus": simulation.down,
        "joined_gpus": joined,
    }


def _where(known: Bools, values: Floats) -> Floats:
    """The values that are known; nothing is copied where all are."""
    return values if known.all() else values[known]


def _waited(simulation: Simulation, rows: slice) -> int | None:
    """How many jobs did not start in their first round, or were stopped; None where jobs may also be narrowed, or choose among types."""
    tables = simulation.state.tables
    F, I = tables.F, tables.I
    if len(tables.cluster.types) > 1 or (I[Job.MIN_GPUS, rows] < I[Job.MAX_GPUS, rows]).any():
        return None
    late = ~(F[Job.FIRST_START, rows] - F[Job.ARRIVAL, rows] <= simulation.state.regime.round * (1.0 + 1e-9))
    return int((late | (I[Job.PREEMPTIONS, rows] > 0)).sum())


def what_jobs_held(simulation: Simulation) -> Held:
    """Seconds and device-seconds of every job: those of the log, and those that shares of the time were worth."""
    state = simulation.state
    held = held_by_job(state.log, state.tables.F[Job.FINISH], end_of(simulation))
    for row, seconds in simulation.engine.grants.fluid.held.items():
        held.device_seconds[row] += seconds
    return held


def _utilization(simulation: Simulation, cluster: Cluster, joined: list[tuple[float, int]], end: float) -> float | None:
    """Device-seconds in use over those of devices that were there and up; None where there were none, or it is unknown."""
    log, grants = simulation.state.log, simulation.engine.grants
    begin, stop = stretch_of(simulation, end)
    capacity = cluster.gpus * (stop - begin) + _area(joined, begin, stop) - _area(simulation.down, begin, stop)
    if capacity <= 0.0 or (grants.fluid.device_seconds and simulation.track is not None):  # shares of the time are added up to the end
        return None
    alone = find_imitation(simulation.state.regime.name) is None and not grants.used_sharing
    devices = simulation.state.tables.D.shape[1]
    busy = busy_seconds(log, begin, stop, end) if alone else float(busy_by_device(log, devices, begin, stop, end).sum())
    return _number((busy + grants.fluid.device_seconds) / capacity)


def _names(cluster: Cluster) -> dict[str, list[str]]:
    """The names of the nodes with GPUs, where they are not just numbered."""
    names = [node.name for node in cluster.nodes]
    return {} if names == [f"node{number}" for number in range(len(names))] else {"node_names": [n.name for n in cluster.nodes if n.gpus]}


def _wholes_for_parts(tables: Tables, policy: Policy) -> dict[str, int]:
    """How many jobs need a part of a GPU and can only get a whole one, where there are such."""
    demand = tables.metrics.get("gpu_demand")
    if demand is None or policy.shares_devices:
        return {}
    count = int(((tables.I[Job.GPUS] == 1) & (demand < 1.0)).sum())
    return {"wholes_for_parts": count} if count else {}


def _types(cluster: Cluster) -> dict[str, list[tuple[str, int]]]:
    """The device types of the nodes in their order, each with how many nodes follow one another, where there are several."""
    if len(cluster.types) < 2:
        return {}
    return {"node_types": [(kind, len(list(same))) for kind, same in groupby(node.type for node in cluster.nodes)]}


def _racks(cluster: Cluster) -> dict[str, list[tuple[int, int]]]:
    """The racks of the nodes in their order, numbered, each with how many nodes follow one another, where there are several."""
    if len(cluster.racks) < 2:
        return {}
    return {"node_racks": [(int(rack), len(list(same))) for rack, same in groupby(cluster.node_rack.tolist())]}


def _sizes(cluster: Cluster) -> str:
    """GPUs of the nodes in their order, as ``32x4,2x8``; short even for thousands of nodes."""
    return ",".join(f"{len(list(same))}x{gpus}" for gpus, same in groupby(node.gpus for node in cluster.nodes))


def _joined(simulation: Simulation, end: float) -> list[tuple[float, int]]:
    """Devices of nodes that were not there at the beginning: (time, how many there are from then on)."""
    if not simulation.node_events:
        return []
    found, count = [], 0
    for event in simulation.node_events:
        if isinstance(event, NodeEvent) and event.node is not None and event.kind == "join" and event.time <= end:
            count += event.node.gpus
            found.append((event.time, count))
    return found


def _area(marks: list[tuple[float, int]], begin: float, end: float) -> float:
    """Device-seconds between two moments under a step function of (time, devices)."""
    return sum(count * max(0.0, min(stop, end) - max(start, begin)) for (start, count), (stop, _) in pairwise([*marks, (end, 0)]))


# --- how often gangs changed, what that cost, and which jobs spanned nodes and racks ------------------------------------


def changes_of(simulation: Simulation) -> dict[str, object]:
    """Resizes, migrations, jobs that ever spanned nodes, and seconds that gangs held devices without working (None: unknown).

    Seconds are those of `Costs`: of a first start, and after each stop, resize and move, as far as the gang ran long enough to pay them.
    """
    state, engine = simulation.state, simulation.engine
    log, n = state.log, state.log.intervals
    row, reason, count = (log.LI[column, :n] for column in (Interval.ROW, Interval.REASON, Interval.COUNT))
    found: dict[str, object] = {
        "resizes": int(np.count_nonzero(reason == Reason.RESIZED)),
        "migrations": int(np.count_nonzero(reason == Reason.MOVED)),
        "cross_node_jobs": spanning(simulation, np.arange(state.tables.NI.shape[1])),
    }
    if len(state.tables.cluster.racks) > 1:
        found["cross_rack_jobs"] = spanning(simulation, state.tables.NI[Node.RACK])
    if (met := _deadlines_met(simulation)) is not None:
        found["deadline_satisfaction"] = met
    told_elsewhere = overrides(state.tables.performance, "cost") or engine.grants.used_sharing or engine.grants.fluid.device_seconds
    found["time_lost"] = (
        None if told_elsewhere else _paid(simulation, row, reason, count, log.LF[Interval.START, :n], log.LF[Interval.END, :n])
    )
    return found


def _deadlines_met(simulation: Simulation) -> float | None:
    """The share of deadlines that were met, of those met or missed by the end of the run; None: there are none."""
    state = simulation.state
    F, phase = state.tables.F, state.tables.I[Job.PHASE]
    due, ended = F[Job.DEADLINE], phase == COMPLETED
    if np.isnan(due).all():
        return None
    met = ended & (F[Job.FINISH] <= due)
    there = ~np.isnan(due) & (phase != FUTURE)
    missed = there & ~met & (ended | (phase > COMPLETED) | (due < max(state.now, np.nanmax(F[Job.FINISH], initial=0.0))))
    judged = int((there & met).sum() + missed.sum())
    return float((there & met).sum() / judged) if judged else None


def spanning(simulation: Simulation, place: Ints) -> int:
    """Jobs that ever held devices in several places, by the place of each node (itself, or its rack)."""
    log, n = simulation.state.log, simulation.state.log.intervals
    several = np.zeros(n, dtype=np.bool_)
    _in_several(log.LI[Interval.OFFSET, :n], log.LI[Interval.COUNT, :n], log.LD, place[simulation.state.tables.D[Device.NODE]], several)
    return len(np.unique(log.LI[Interval.ROW, :n][several]))


@kernel
def _in_several(first: Ints32, count: Ints32, device: Ints32, place: Ints, several: Bools) -> None:
    for k in range(first.shape[0]):
        for at in range(first[k] + 1, first[k] + count[k]):
            if place[device[at]] != place[device[first[k]]]:
                several[k] = True
                break


def _paid(simulation: Simulation, row: Any, reason: Any, count: Any, start: Any, end: Any) -> float:
    costs = simulation.state.costs
    if not (costs.start or costs.resume or costs.resize or costs.move):
        return 0.0
    order = np.lexsort((start, row))
    again = np.concatenate(([False], row[order][1:] == row[order][:-1])) if len(order) else np.zeros(0, dtype=bool)
    before = np.concatenate(([0], reason[order][:-1])) if len(order) else reason
    price = np.full(len(order), costs.resume)
    price[before == Reason.RESIZED] = costs.resize
    price[before == Reason.MOVED] = costs.move
    price[~again] = costs.start
    price = np.where(price > 0.0, price + costs.doubling * np.log2(np.maximum(count[order], 1)), 0.0)
    return float(np.minimum(price, np.maximum(end[order] - start[order], 0.0)).sum())
