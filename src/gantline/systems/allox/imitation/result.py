"""What IRFsim's loop found out, in the tables and the log of a run. Samples are intervals of their job that end at their limit."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job, Option
from gantline.core.jit import kernel
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.log import Interval
from gantline.systems.allox.imitation import world
from gantline.systems.allox.imitation.world import CPU, GPU


def write_result(simulation: Simulation, w: world.World) -> None:
    """Fill in starts, ends, service and intervals."""
    state, t = simulation.state, simulation.state.tables
    F, I, n = t.F, t.I, w.jobs
    count = int(w.counts[world.LOGGED])
    (task, device), (begin, end) = w.log_codes[:, :count], w.log_times[:, :count]
    full = task < n
    row = np.where(full, task, (task - n) // 4)
    seconds = np.where(full, end - begin, 0.0)
    width = np.where(device == GPU, w.tasks[world.UNITS + GPU, task], 0.0)
    F[Job.SERVICE] = np.bincount(row, weights=seconds, minlength=n)
    F[Job.GPUTIME] = np.bincount(row, weights=seconds * width, minlength=n)
    I[Job.RESTARTS] = I[Job.PREEMPTIONS] = np.maximum(np.bincount(row[full], minlength=n) - 1, 0)
    F[Job.FIRST_START] = F[Job.MARK] = w.tasks[world.FIRST_START, :n]
    F[Job.FINISH] = w.tasks[world.FINISH, :n]
    done = ~np.isnan(F[Job.FINISH])
    F[Job.DONE] = F[Job.SAFE] = np.where(done, F[Job.WORK], 0.0)
    I[Job.PHASE] = np.where(done, int(Phase.COMPLETED), int(Phase.PENDING))
    state.now = float(end.max(initial=0.0))
    span = w.codes[world.SPAN, :n]
    last = np.zeros(count, dtype=bool)
    last[span[span >= 0]] = True
    reason = np.where(full, np.where(last, int(Reason.FINISHED), int(Reason.PREEMPTED)), int(Reason.LIMIT))
    _write_log(simulation, row, device, begin, end, reason, width.astype(np.int64))


def _write_log(simulation: Simulation, row: Ints, device: Ints, begin: Floats, end: Floats, reason: Ints, width: Ints) -> None:
    """One interval per run; a pool has no devices, so each gets the lowest that is free."""
    t, log, n = simulation.state.tables, simulation.state.log, len(row)
    log.reserve(n, int(width.sum()))
    cpu_nodes = np.array([number for number, node in enumerate(t.cluster.nodes) if not node.gpus], dtype=np.int64)
    node, held = np.full(n, -1, dtype=np.int64), np.empty(int(width.sum()), dtype=np.int64)
    free = np.full(t.D.shape[1] + len(cpu_nodes), -np.inf)
    sizes = np.zeros(n, dtype=np.int64)
    count = seat(device, begin, end, width, free[: t.D.shape[1]], free[t.D.shape[1] :], cpu_nodes, node, held, sizes)
    log.LI[Interval.ROW, :n], log.LI[Interval.OPTION, :n], log.LI[Interval.REASON, :n] = row, _options(simulation)[row, device], reason
    log.LI[Interval.OFFSET, :n], log.LI[Interval.COUNT, :n], log.LI[Interval.NODE, :n] = np.cumsum(sizes) - sizes, sizes, node
    log.LF[Interval.START, :n], log.LF[Interval.END, :n] = begin, end
    log.LD[:count] = held[:count]
    log.LN[:] = n, count


def _options(simulation: Simulation) -> Ints:
    """Per job and device, the row of its option."""
    t = simulation.state.tables
    owner = np.repeat(np.arange(t.I.shape[1]), t.I[Job.OPTION_COUNT])
    found = np.zeros((t.I.shape[1], 2), dtype=np.int64)
    found[owner, np.where(t.options.I[Option.GPUS] > 0, GPU, CPU)] = np.arange(len(owner))
    return found


@kernel
def seat(
    device: Ints,
    begin: Floats,
    end: Floats,
    width: Ints,
    gpu_free: Floats,
    node_free: Floats,
    cpu_nodes: Ints,
    node: Ints,
    held: Ints,
    sizes: Ints,
) -> int:
    """Give every run, in order of their beginnings, the lowest GPUs or the lowest CPU node that is free; how many GPUs in all."""
    count = 0
    for i in range(device.size):
        if device[i] == GPU:
            for gpu in range(gpu_free.size):
                if sizes[i] < width[i] and gpu_free[gpu] <= begin[i]:
                    gpu_free[gpu] = end[i]
                    held[count] = gpu
                    count += 1
                    sizes[i] += 1
        else:
            for k in range(node_free.size):
                if node_free[k] <= begin[i]:
                    node_free[k] = end[i]
                    node[i] = cpu_nodes[k]
                    break
    return count
