"""The loop of `--regime pal`: FIFO, LAS and SRTF with PAL's placements as its authors' simulator runs them, job by job."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gantline.core.columns import Job
from gantline.core.device_speeds import DeviceSpeeds
from gantline.core.errors import RefusedError, near
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.assembly.device_speeds import classes_of
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import write_log
from gantline.policies.placement.bins import speed_bins
from gantline.policies.placement.variability import DeviceBins
from gantline.systems.pal.imitation.placing import Placing
from gantline.systems.pal.imitation.rounds import Life, PalJob, PalRounds
from gantline.traces.trace import Trace

_RULES = ("packed", "packed-sticky", "pm-first", "pal", "random")


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace until its last job is done; jobs that the original adds behind it compete, and are not reported."""
    state = simulation.state
    _refuse_what_it_has_not(simulation)
    speeds = state.facts.device_speeds
    if speeds is None:
        raise RefusedError("no speeds of devices are known", where="--regime pal", fix="give --device-speeds FILE.csv")
    node = [int(each) for each in state.tables.cluster.device_node]
    seats = {kind: DeviceBins(node, _bins(speeds, kind)) for kind in speeds.classes}
    penalty = state.facts.locality
    rounds = PalRounds(
        _jobs(trace, speeds), speeds, Placing.named(state.placement.name, seats, penalty), penalty, state.regime.round,
        simulation.engine.policy.name, simulation.on_progress,
    )  # fmt: skip
    lives = rounds.run()
    _write(simulation, lives)
    simulation.engine.decisions = round(state.now / state.regime.round) + 1
    return {"fillers": rounds.fillers, "locality": penalty}


def _refuse_what_it_has_not(simulation: Simulation) -> None:
    rule = simulation.state.placement.name
    if rule not in _RULES:
        raise RefusedError(
            f"PAL's simulator has no placement '{rule}'", where="--regime pal", fix=f"{near(rule, _RULES)}; it has {', '.join(_RULES)}"
        )
    if len(simulation.state.tables.cluster.types) != 1:
        raise RefusedError("PAL's simulator knows one type of device", where="--regime pal", fix="use a cluster such as 16x4")


def _bins(speeds: DeviceSpeeds, kind: str) -> list[float]:
    """Bins as the file gives them; else with two clusters and the outliers, as the authors' program always ends up with."""
    found = speeds.bins[kind] if kind in speeds.bins else speed_bins(speeds.slowdown[kind], clusters=2)
    return [float(each) for each in found]


def _jobs(trace: Trace, speeds: DeviceSpeeds) -> list[PalJob]:
    """The trace in steps; where it has none, a job is so many steps of one second."""
    frame = trace.frame
    stepped = {"iterations", "iteration_time"} <= set(frame.columns)
    steps = frame["iterations" if stepped else "duration"].to_list()
    step_time = frame["iteration_time"].to_list() if stepped else [1.0] * len(frame)
    rows = zip(frame["arrival"].to_list(), frame["gpus"].to_list(), steps, step_time, classes_of(trace, speeds))
    return [PalJob(at, int(gpus), float(count), float(each), kind) for at, gpus, count, each, kind in rows]


def _write(simulation: Simulation, lives: list[Life]) -> None:
    """Starts, ends, service and intervals, in the tables and the log of the run."""
    state, t = simulation.state, simulation.state.tables
    t.F[Job.SERVICE] = [life.service for life in lives]
    t.F[Job.GPUTIME] = t.F[Job.SERVICE] * t.I[Job.GPUS]
    t.F[Job.FIRST_START] = t.F[Job.MARK] = [life.first_start for life in lives]
    t.F[Job.FINISH] = [life.end for life in lives]
    t.F[Job.DONE] = t.F[Job.SAFE] = t.F[Job.WORK]
    t.I[Job.RESTARTS] = t.I[Job.PREEMPTIONS] = [len(life.spells) - 1 for life in lives]
    t.I[Job.PHASE] = int(Phase.COMPLETED)
    state.now = max((life.end for life in lives), default=0.0)
    spells = sorted((begin, row, end, devices) for row, life in enumerate(lives) for begin, end, devices in life.spells)
    row = np.array([each[1] for each in spells], dtype=np.int64)
    finished = [math.isclose(end, lives[number].end) for _, number, end, _ in spells]
    write_log(
        simulation, row=row, option=t.I[Job.OPTION_FIRST][row],
        reason=[int(Reason.FINISHED) if last else int(Reason.PREEMPTED) for last in finished],
        begin=[each[0] for each in spells], end=[each[2] for each in spells], gpus=[len(each[3]) for each in spells],
        devices=[device for each in spells for device in each[3]],
    )  # fmt: skip
