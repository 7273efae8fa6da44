"""A run in Gavel's rounds as a checkpoint: clock, accounts, jobs, log and what the policy remembers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gantline.core.columns import Job
from gantline.core.memory import decode, encode
from gantline.core.policy import parameters
from gantline.engine.drivers.checkpoints import read_checkpoint, write_checkpoint
from gantline.engine.log import Log
from gantline.engine.policy_failures import Incident
from gantline.systems.gavel.imitation.run_state import GavelRunState
from gantline.systems.gavel.imitation.tables import RoundCount, RoundStep, RoundTime, more_room

_JOBS = ("F", "I", "done", "failures", "seen")
_DEVICES = ("total", "held", "paid")


def save_rounds(rounds: GavelRunState, path: Path) -> None:
    """Write all that the run has become."""
    setup, n, log = rounds.setup, int(rounds.count[RoundCount.TASKS]), rounds.simulation.state.log
    count = rounds.count.copy()
    if count[RoundCount.STEP] == RoundStep.CLOSE:  # stopped between two rounds: the one that ran has been closed
        count[RoundCount.STEP] = RoundStep.ADMIT
    arrays: dict[str, Any] = {"clock": rounds.clock, "count": count, "orders": rounds.orders, "believed": setup.pairs.believed}
    arrays |= {f"task.{name}": value[:n] for name, value in rounds.tasks._asdict().items()}
    arrays |= {f"job.{name}": getattr(setup.jobs, name) for name in _JOBS}
    arrays |= {f"device.{name}": getattr(setup.devices, name) for name in _DEVICES}
    arrays |= {"log.LN": log.LN, "log.LI": log.LI[:, : log.LN[0]], "log.LF": log.LF[:, : log.LN[0]], "log.LD": log.LD[: log.LN[1]]}
    notices = [[notice.time, notice.decision, notice.what] for notice in rounds.simulation.engine.notices]
    head = {"memory": encode(rounds.memory), "calls": rounds.calls, "late": list(rounds.late), "notices": notices}
    write_checkpoint(path, fits(rounds), head | {"draws": rounds.draws.getstate()}, arrays)


def resume_rounds(rounds: GavelRunState, path: Path) -> None:
    """Make the run what it was when the checkpoint was written."""
    head, arrays = read_checkpoint(path, fits(rounds))
    setup, simulation = rounds.setup, rounds.simulation
    until = rounds.clock[RoundTime.UNTIL]
    rounds.clock[:], rounds.count[:] = arrays["clock"], arrays["count"]
    rounds.clock[RoundTime.UNTIL] = until
    rounds.orders = arrays["orders"]
    setup.pairs.believed[:] = arrays["believed"]
    tasks = len(arrays["task.first"])
    while len(rounds.tasks.first) < tasks:
        rounds.tasks = more_room(rounds.tasks)
    for name, column in rounds.tasks._asdict().items():
        column[:tasks] = arrays[f"task.{name}"]
    for part, names, target in (("job", _JOBS, setup.jobs), ("device", _DEVICES, setup.devices)):
        for name in names:
            getattr(target, name)[:] = arrays[f"{part}.{name}"]
    _restore_log(simulation.state.log, arrays)
    rounds.memory, rounds.calls, rounds.late = decode(head["memory"]), head["calls"], tuple(head["late"])
    simulation.engine.decisions = rounds.calls
    simulation.engine.notices[:] = [Incident(*notice) for notice in head["notices"]]
    version, words, gauss = head["draws"]
    rounds.draws = Random()
    rounds.draws.setstate((version, tuple(words), gauss))


def fits(rounds: GavelRunState) -> dict[str, Any]:
    """What must be the same for a run to be gone on with; the time at which it stops may differ."""
    setup, state = rounds.setup, rounds.simulation.state
    policy = setup.policy
    speeds = hashlib.blake2b(digest_size=8)
    for part in (
        setup.jobs.speed,
        setup.jobs.speed_across,
        setup.jobs.steps,
        setup.pairs.truth,
        setup.jobs.F[Job.ARRIVAL],
        setup.devices.node,
    ):
        speeds.update(np.ascontiguousarray(part).tobytes())
    return {
        "policy": policy.name,
        "parameters": {item.name: str(getattr(policy, item.name)) for item in parameters(type(policy))},
        "devices": dict(zip(setup.types, setup.devices.capacity.tolist())),
        "round": float(rounds.clock[RoundTime.LENGTH]),
        "seed": state.seed,
        "tracked jobs": [setup.rules.low, setup.rules.high],
        "speeds across nodes": bool(setup.rules.across),
        "jobs and speeds": speeds.hexdigest(),
    }


def _restore_log(log: Log, arrays: dict[str, Any]) -> None:
    log.LN[:] = 0
    log.reserve(int(arrays["log.LN"][0]) + 1, int(arrays["log.LN"][1]) + 1)
    log.LN[:] = arrays["log.LN"]
    log.LI[:, : log.LN[0]], log.LF[:, : log.LN[0]] = arrays["log.LI"], arrays["log.LF"]
    log.LD[: log.LN[1]] = arrays["log.LD"]
