"""The summary of a run: one flat dictionary with everything needed to read and to repeat it."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import gantline
from gantline.core.arrays import Bools, Floats
from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.phases import COMPLETED
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.imitations.registry import find_imitation
from gantline.models.estimate_chain import Estimates
from gantline.policies.admission.rules import AdmissionRule
from gantline.policies.placement.rules import PlacementRule
from gantline.simulator.occupancy import Held, busy_by_device, busy_seconds, held_by_job
from gantline.simulator.percentiles import percentiles
from gantline.simulator.stretch import end_of, stretch_of
from gantline.traces.trace import Trace

if TYPE_CHECKING:
    from gantline.engine.drivers.simulation import Simulation


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
    middle, (p95, p99) = percentiles(jct, (95, 99)) if len(jct) else (None, (None, None))
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
    from gantline.core.node_events import NodeEvent

    found, count = [], 0
    for event in simulation.node_events:
        if isinstance(event, NodeEvent) and event.node is not None and event.kind == "join" and event.time <= end:
            count += event.node.gpus
            found.append((event.time, count))
    return found


def _area(marks: list[tuple[float, int]], begin: float, end: float) -> float:
    """Device-seconds between two moments under a step function of (time, devices)."""
    return sum(count * max(0.0, min(stop, end) - max(start, begin)) for (start, count), (stop, _) in pairwise([*marks, (end, 0)]))
