"""Victims by what they lose: of all gangs that rank lower, those are stopped first that have least to do again.

A gang that is stopped loses what it has done since its last save, on all of its devices; one that loses nothing comes first. Among equals
the lower rank gives way, as it does without this rule. Nobody is stopped in vain: a gang chosen early runs on where those chosen after it
make room by themselves. A victim may rank above gangs that were spared: it does not stop these in turn, or
nothing would have been won; it waits for free devices, or stops what has started since. Plans that assign devices name what runs, and leave
no choice.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.gather import elapsed
from gantline.core.policy import Policy
from gantline.engine.checkpoints import safe_work
from gantline.engine.settings import Switch
from gantline.engine.state import State
from gantline.engine.walk_notes import ORDER


def lost_by(state: State, row: int) -> float:
    """Device-seconds of work that a gang would have to do again if it were stopped without a save."""
    F, I = state.tables.F, state.tables.I
    rate = float(F[Job.RATE, row])
    if rate <= 0.0:
        return 0.0
    done = float(F[Job.DONE, row]) + rate * elapsed(F, I, row, state.now)
    return max(0.0, done - safe_work(state, row)) / rate * int(I[Job.HELD, row])


def order_victims(state: State, key: Floats, rows: Ints) -> None:
    """Say in which order the walk that follows looks for victims; `key` ranks the `rows` of the plan."""
    running = state.running_rows
    ranks = np.full(state.tables.F.shape[1], np.inf)
    ranks[rows] = key
    lost = np.array([lost_by(state, row) for row in running.tolist()])
    state.scratch[ORDER, : len(running)] = running[np.lexsort((running, ranks[running], -lost))]


def check_choice(state: State, policy: Policy) -> None:
    """Refuse the rule where nothing could follow it."""
    if not state.SI[Switch.LEAST_LOST]:
        return
    name = policy.name or type(policy).__name__
    if not policy.ranks:
        text = f"policy '{name}' assigns devices: its plans name what is stopped, and leave no choice"
        raise RefusedError(text, where="--victims least-lost", fix="use --victims order, or a policy that ranks jobs")
    if state.regime.keep_evictions or state.regime.strict:
        text = f"regime '{state.regime.name}' says itself what is stopped"
        raise RefusedError(text, where="--victims least-lost", fix="use --victims order, or the default regime")
