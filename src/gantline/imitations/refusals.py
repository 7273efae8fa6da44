"""Options of a run that an original has nothing like are refused, not ignored."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gantline.core.errors import RefusedError
from gantline.drivers.virtual import Simulation
from gantline.performance.costs import Costs


def refuse(simulation: Simulation, whose: str, where: str, *, but: Sequence[str] = (), also: Sequence[str] = ()) -> None:
    """Refuse failures, late decisions, admission, costs and the like.

    `but` names what this original does have, `also` what others have and this one has not: rounds of any length, an early end.
    """
    state = simulation.state
    given = {
        "--node-events": bool(simulation.node_events),
        "--decision-latency": simulation.latency > 0,
        "--admission": simulation.admission.name != "accept-all",
        "--costs": state.costs != Costs(),
        "--min-run": state.min_run > 0,
        "--track": simulation.track is not None,
        "--record": simulation.engine.recorder is not None,
    }
    rarer = {"--round": state.regime.round > 0, "--until": math.isfinite(simulation.until)}
    given |= {name: rarer[name] for name in also}
    for name in [name for name, is_given in given.items() if is_given and name not in but]:
        raise RefusedError(f"{whose} has nothing like {name}", where=where, fix=f"leave {name} out, or use another --regime")
