"""How fast those go whose speed is not simply their option's: who shares, has exact devices, parts or a batch size.

A performance model may answer two questions, both optional::

    granted_rate(tables, row, grant, mates)              work per second with this grant beside these mates ({row: grant}); a pair (speed,
                                                         until) where the speed changes by itself; None: no opinion
    shared_rate(tables, row, mates, option, assignment)  the same in short form, asked only when somebody shares

It is asked whenever company or a grant changes, and when a speed no longer holds; work done (DONE at SINCE) is up to date then. Without a
model devices are divided: in space by the fractions that members ask for, in time by their shares; stages and communication phases that
are interleaved are taken not to collide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gantline.core import columns as c
from gantline.core.grant import Grant
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Mode
from gantline.engine.checkpoints import note_saves
from gantline.engine.gang import set_due, settle

if TYPE_CHECKING:
    from gantline.engine.state import State


_BLINK = 1e-3  # a model is not asked again sooner, so that rounding cannot make time stand still


def rate_alone(state: State, row: int) -> float:
    """Work per second of the option in use, by whether the gang sits on as few nodes as it can."""
    t = state.tables
    option, spread = int(t.I[c.OPTION, row]), int(t.I[c.SPREAD, row])
    if spread <= 1:
        return float(t.options.F[c.O_RATE, option])
    grant = t.granted.get(row)
    first = grant.devices[0] if grant is not None and grant.devices else int(t.I[c.HEAD, row])
    size = int(t.NI[c.N_GPUS, t.D[c.D_NODE, first]])
    together = spread <= -(-int(t.I[c.HELD, row]) // size)
    return float(t.options.F[c.O_RATE if together else c.O_RATE_SPREAD, option])


def refresh(state: State, rows: Iterable[int]) -> float:
    """Bring the speeds of rows up to date, and with them when they are due; the instant until which all of them hold comes back."""
    t, soonest = state.tables, math.inf
    asked = hasattr(t.performance, "granted_rate")
    for row in rows:
        if t.I[c.PHASE, row] != Phase.RUNNING:
            continue
        if asked and row in t.granted:
            _settle(state, row)
        rate, until = rate_now(state, row)
        soonest = min(soonest, max(until, state.now + _BLINK))
        if rate != t.F[c.RATE, row]:
            _settle(state, row)
            t.F[c.RATE, row] = rate
            set_due(t.F, row)
    return soonest


def rate_now(state: State, row: int) -> tuple[float, float]:
    """Work per second of a running row, given who runs beside it, and until when that holds."""
    t = state.tables
    grant = t.granted.get(row)
    if grant is None:
        return rate_alone(state, row), math.inf
    if not grant.fluid:
        return _rate(state, row, grant, int(t.I[c.OPTION, row]), rate_alone(state, row))
    found, soonest = 0.0, math.inf
    for item, members, (option, amount) in zip(grant.items, grant.members, grant.fluid):
        part = replace(grant, items=(item,), members=(members,), fluid=((option, amount),))
        rate, until = _rate(state, row, part, option, float(t.options.F[c.O_RATE, option]))
        found, soonest = found + item.share * rate, min(soonest, until)
    return found, soonest


def _settle(state: State, row: int) -> None:
    note_saves(state, row)
    settle(state.tables.F, state.tables.I, row, state.now)


def _rate(state: State, row: int, grant: Grant, option: int, alone: float) -> tuple[float, float]:
    t, item = state.tables, grant.assignment
    mates = {mate: t.granted[mate] for mate in sorted(grant.members[0]) if mate != row and mate in t.granted}
    model = t.performance
    if hasattr(model, "granted_rate"):
        answer = model.granted_rate(t, row, grant, mates)
        if isinstance(answer, tuple):
            return float(answer[0]), float(answer[1])
        if answer is not None:
            return float(answer), math.inf
    if mates and hasattr(model, "shared_rate"):
        return float(model.shared_rate(t, row, list(mates), option, item)), math.inf
    if item.mode == Mode.TIME:
        return alone * item.share / max(1.0, _crowd(item.share, grant, mates, "share")), math.inf
    if item.mode == Mode.SPACE:
        return alone * item.fraction / max(1.0, _crowd(item.fraction, grant, mates, "fraction")), math.inf
    return alone * item.fraction, math.inf


def _crowd(own: float, grant: Grant, mates: Mapping[int, Grant], amount: str) -> float:
    """What is asked in all of the device that is asked most of: a gang is as fast as its slowest worker."""

    def asked(item: Assignment) -> float:
        return float(getattr(item, amount))

    if grant.fluid:
        return own + sum(asked(mate.assignment) for mate in mates.values())
    return max((own + sum(asked(m.assignment) for m in mates.values() if device in m.devices) for device in grant.devices), default=own)
