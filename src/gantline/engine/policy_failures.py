"""Turns that a policy loses: what is recorded, which line of the policy's file caused them, and when the run gives up.

A policy that raises, answers late or asks for the impossible loses its turn, and the last valid plan stays in force. After too many
lost turns in a row the run ends and reports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from gantline.core.arrays import Ints
from gantline.core.errors import GantlineError
from gantline.core.phases import Phase
from gantline.core.plan import Refusal
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.reasons import Reason
from gantline.engine.ranks import leave
from gantline.engine.state import State

#: so many lost turns in a row end a run: if the policy never answered, and if it did once; late answers cost wall-clock time
NEVER_ANSWERED, ANSWERED_ONCE = 20, 200
NEVER_IN_TIME, IN_TIME_ONCE = 2, 10


class OverBudgetError(GantlineError):
    """A decision took longer than it may."""


@dataclass(frozen=True, slots=True)
class Incident:
    """A turn that a policy lost, or a note of its plans."""

    time: float
    decision: int
    what: str

    def __str__(self) -> str:
        return f"t={self.time:g}, decision {self.decision}: {self.what}"


@dataclass
class PolicyFailures:
    """How many turns were lost, and how many of them one after the other; `on_lost` is called for each when it happens."""

    on_lost: Callable[[Incident], None] | None = None
    total: int = 0
    in_a_row: int = 0
    late_in_a_row: int = 0
    answers: int = 0

    def answered(self) -> None:
        """A valid plan in time."""
        self.answers += 1
        self.in_a_row = self.late_in_a_row = 0

    def lose(self, incident: Incident, late: bool) -> None:
        """One more lost turn."""
        self.total += 1
        self.in_a_row += 1
        self.late_in_a_row = self.late_in_a_row + 1 if late else 0
        if self.on_lost is not None:
            self.on_lost(incident)

    @property
    def hopeless(self) -> bool:
        """Whether the policy has lost too many turns in a row to be called again."""
        late, lost = (IN_TIME_ONCE, ANSWERED_ONCE) if self.answers else (NEVER_IN_TIME, NEVER_ANSWERED)
        return self.late_in_a_row >= late or self.in_a_row >= lost


def describe_error(policy: Policy, error: BaseException) -> str:
    """What went wrong in a decision, with the line of the policy's own file."""
    if isinstance(error, GantlineError):
        what = str(error)
    elif isinstance(error, SystemExit):
        what = f"the policy called sys.exit({'' if error.code is None else repr(error.code)})"
    elif isinstance(error, RecursionError):
        what = "the policy calls itself without end (RecursionError)"
    else:
        what = f"the policy raised {type(error).__name__}" + (f": {error}" if str(error) else "")
    place = _place(policy, error.__traceback__)
    return f"{what} ({place})" if place else what


def _place(policy: Policy, trace: TracebackType | None) -> str:
    """FILE:LINE: where the policy's own file was left last, or where its decision begins; nothing for policies of this package."""
    kind = type(policy.observed)
    if kind.__module__.startswith("gantline."):
        return ""
    method: Any = kind.key if issubclass(kind, OrderPolicy) and kind.decide is OrderPolicy.decide else kind.decide
    code = getattr(method, "__code__", None)
    own, file, line = {getattr(sys.modules.get(kind.__module__), "__file__", None)}, "", 0
    if code is not None and not str(getattr(method, "__module__", "")).startswith("gantline."):  # else it is inherited from one of ours
        file, line = code.co_filename, code.co_firstlineno
        own.add(file)  # a cell of a notebook is no module's file
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in own:
            file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return f"{file}:{line}" if file and line else ""


# Jobs that a policy refuses: they leave for good, with what it offered instead.


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
    refused, incidents, jobs = [], [], state.tables.jobs
    for one in refusals:
        row = int(rows[one.job])
        if jobs.phase[row] != Phase.PENDING:
            what = f"job '{state.tables.ids[row]}' is refused, but it does not wait any more"
            incidents.append(Incident(state.now, state.decision, what))
            continue
        jobs.phase[row], jobs.reason[row] = int(Phase.REJECTED), int(Reason.REFUSED)
        leave(state.lists, row)
        refused.append(Refused(state.now, row, one.why, dict(one.offer)))
    state.rebuild()
    return refused, incidents
