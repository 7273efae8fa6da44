"""For how long gangs of a run are not stopped for others: as given, else as is usual where its orders are carried out."""

from __future__ import annotations

from dataclasses import fields, replace

from gantline.engine.assembly.spec import RunSpec
from gantline.engine.preemption_grace import LIVE_STOPS, StopRules


def stops_of(spec: RunSpec) -> StopRules:
    """Real programs are spared, and so are those that are simulated as such; elsewhere gangs are stopped whenever the policy decides so."""
    usual = LIVE_STOPS if spec.executor == "measured" else StopRules()
    given = {item.name: getattr(spec, item.name) for item in fields(StopRules)}
    return replace(usual, **{name: value for name, value in given.items() if value is not None})
