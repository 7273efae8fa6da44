"""Jobs that a policy refuses: they leave for good, with what it offered instead."""

from __future__ import annotations

from dataclasses import dataclass

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.plan import Refusal
from gantline.core.reasons import Reason
from gantline.engine.lost_turns import Incident
from gantline.engine.ranks import leave
from gantline.engine.state import State


@dataclass(frozen=True, slots=True)
class Refused:
    """A job that a policy would not run as asked, and what it offered instead."""

    time: float
    row: int
    why: str
    offer: dict[str, float]

    def __str__(self) -> str:
        offer = ", ".join(f"{name}={value:g}" for name, value in self.offer.items())
        return f"{self.why} (offer: {offer})" if offer else self.why


def turn_away(state: State, refusals: tuple[Refusal, ...], rows: Ints) -> tuple[list[Refused], list[Incident]]:
    """Refused jobs leave; one that runs already cannot be refused, which is an incident."""
    refused, incidents, I = [], [], state.tables.I
    for one in refusals:
        row = int(rows[one.job])
        if I[Job.PHASE, row] != Phase.PENDING:
            what = f"job '{state.tables.ids[row]}' is refused, but it does not wait any more"
            incidents.append(Incident(state.now, state.decision, what))
            continue
        I[Job.PHASE, row], I[Job.REASON, row] = int(Phase.REJECTED), int(Reason.REFUSED)
        leave(state.lists, row)
        refused.append(Refused(state.now, row, one.why, dict(one.offer)))
    state.rebuild()
    return refused, incidents
