"""The loop of `--regime gaia`: GAIA's policies as its simulator runs them, row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gantline.core.errors import RefusedError
from gantline.engine.drivers.simulation import Simulation
from gantline.systems.gaia.imitation import clock, ready
from gantline.systems.gaia.imitation.intensity import Intensity
from gantline.systems.gaia.imitation.jobs import HOUR, TICK, GaiaJobs, GaiaQueues
from gantline.systems.gaia.imitation.result import GaiaRows, write_result
from gantline.systems.gaia.policies.policy import Gaia
from gantline.traces.trace import Trace

_FIRST_HOUR = 7000
"""Where the authors' runs begin in their series."""

_BY_CARBON: Mapping[str, ready.Planner] = {
    "lowest": ready.lowest_slot,
    "waiting": ready.lowest_window,
    "oracle": ready.lowest_window_known,
    "cst_average": ready.carbon_time,
    "cst_oracle": ready.carbon_time_known,
}


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace by GAIA's rules; carbon, cost and waiting times as the original counts them."""
    policy = simulation.engine.policy
    assert isinstance(policy, Gaia)  # the scope has no other
    signal = simulation.state.facts.grid.carbon
    if signal is None:
        raise RefusedError("no carbon intensity is known", where="--regime gaia", fix="give --carbon FILE.csv")
    jobs = GaiaJobs.of(trace)
    intensity = Intensity(signal, _FIRST_HOUR if policy.start is None else policy.start)
    rows = _run(policy, jobs, intensity, simulation.on_progress)
    _check_room(rows, sum(node.cpus for node in simulation.state.tables.cluster.nodes))
    write_result(simulation, jobs, rows)
    simulation.engine.decisions = len(rows.job)
    return rows.summary(policy.reserved)


def _run(policy: Gaia, jobs: GaiaJobs, intensity: Intensity, report: Callable[[float, int, int], None] | None) -> GaiaRows:
    """Every piece of every job, in the order of starts. To reports a job is inside while a piece of it waits."""
    queues, plan = GaiaQueues.of(policy.waiting, jobs), _planner(policy)
    owner, pieces = [], []
    for job, (arrival, length) in enumerate(zip(jobs.arrival.tolist(), jobs.length.tolist())):
        planned = plan(intensity, arrival, length, queues.of_length(length))
        owner += [job] * len(planned)
        # with Wait Awhile a piece is classed anew, with a threshold the job's class holds
        whole = policy.by_threshold or len(planned) == 1
        pieces += [(*piece, jobs.brief[job] if whole else piece.ticks <= 2 * HOUR) for piece in planned]
    row = np.array(owner, dtype=np.int64)
    first, ticks, brief = (np.array(column, dtype=np.int64) for column in zip(*pieces))
    asked = clock.Pieces(jobs.arrival[row], first, ticks, jobs.cpus[row], brief)

    def on_tick(tick: int, arrived: int, waiting: int) -> None:
        jobs_in = int(row[arrived - 1]) + 1 if arrived else 0
        if report is not None:
            report(tick * TICK, jobs_in, min(waiting, jobs_in))

    found = clock.run_ticks(
        asked, policy.reserved, work_conserving=policy.work_conserving, spot=policy.spot, on_tick=on_tick if report else None
    )
    return GaiaRows.of(row, asked, found, intensity)


def _check_room(rows: GaiaRows, cpus: float) -> None:
    """The original buys as many CPUs as it needs; a cluster that has fewer would be ignored, so it is refused."""
    times = np.concatenate((rows.start, rows.start + rows.ticks))
    change = np.concatenate((rows.cpus, -rows.cpus))
    busy = np.cumsum(change[np.lexsort((change, times))])
    if len(busy) and busy.max() > cpus:
        what = f"the run needs {int(busy.max())} CPUs at once, the cluster has {cpus:g}, and GAIA's simulator knows no limit"
        raise RefusedError(what, where="--cluster", fix="leave --cluster out, or use --regime default")


def _planner(policy: Gaia) -> ready.Planner:
    if policy.suspends:
        return ready.ecovisor if policy.by_threshold else ready.wait_awhile
    return ready.after_patience if policy.scheduling == "cost" else _BY_CARBON[policy.carbon]
