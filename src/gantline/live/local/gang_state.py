"""What a gang on several nodes is, by what its parts are. Keepers import this; it needs the standard library only."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantline.live.local.files import Values


def combined(states: Sequence[Values], asked_stop: bool) -> Values:
    """What the gang is, by what its parts are."""
    phases = [str(state.get("phase", "starting")) for state in states]
    found: Values = {
        "revision": min(int(one.get("revision", 0)) for one in states),
        "lost": sum(int(one.get("lost", 0)) for one in states),
    }
    found["mark"] = max(int(one.get("mark", -1)) for one in states)
    if picked := [name for one in states for name in one.get("actual", ())]:
        found["actual"] = picked
    for name in ("started", "ended"):
        known = [float(one[name]) for one in states if name in one]
        found |= {name: max(known)} if len(known) == len(states) else {}
    if any(phase != "over" for phase in phases):
        rest = {phase for phase in phases if phase != "over"}
        found["phase"] = rest.pop() if len(rest) == 1 and len(phases) == phases.count(phases[0]) else _mixed(phases)
        return found
    bad = next((one for one in _by_end(states) if one.get("fault") or (one.get("cause") == "failed" and not asked_stop)), None)
    causes = {one.get("cause") for one in states}
    cause = "failed" if bad is not None else "stopped" if "stopped" in causes else "failed" if "failed" in causes else "finished"
    first = bad or next((one for one in states if one.get("cause") == cause), states[0])
    found |= {
        "phase": "over",
        "cause": cause,
        "exit": first.get("exit"),
        "forced": cause == "stopped" and any(one.get("forced") for one in states),
    }
    found |= {name: first[name] for name in ("why", "fault") if first.get(name)}
    return {"ended": time.time(), **found}


def _mixed(phases: Sequence[str]) -> str:
    """Parts that have finished before the others do not stop the gang from running."""
    for phase in ("starting", "stopping"):
        if phase in phases:
            return phase
    return "suspended" if "suspended" in phases else "running"


def _by_end(states: Sequence[Values]) -> list[Values]:
    """Those that ended first; a part that was lost is not known to have ended at any time, and comes before all."""
    return sorted(states, key=lambda one: float(one.get("ended", 0.0)))
