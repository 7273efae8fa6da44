"""What a policy is: parameters and one pure function from a Snapshot to a Plan.

Which values a parameter takes (words, a range, a unit) is said once, beside the parameter; it is checked and shown from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import IntEnum
from functools import lru_cache
from typing import Any, ClassVar, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from gantline.core.errors import GantlineError, UsageError, near
from gantline.core.plan import Misfit, Plan
from gantline.core.snapshot import Snapshot

Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class Takes:
    """One of some words, or a number within bounds; where both are given, either."""

    one_of: tuple[str, ...] = ()
    low: float = -math.inf  # the least value
    above: float = -math.inf  # every value is larger
    high: float = math.inf  # the greatest value
    below: float = math.inf  # every value is smaller
    finite: bool = False
    unit: str = ""

    @property
    def is_number(self) -> bool:
        """Whether a number is among what it takes."""
        bounds = (self.low, self.above, self.high, self.below)
        return bool(self.unit) or self.finite or any(math.isfinite(bound) for bound in bounds)

    def admits(self, value: object) -> bool:
        """Whether the value is one of those; nothing given (None) is always one."""
        if value is None or (isinstance(value, str) and value in self.one_of):
            return True
        if not self.is_number or not isinstance(value, str | int | float):
            return False
        try:
            number = float(value)
        except ValueError:
            return False
        inside = self.low <= number <= self.high and (number > self.above or self.above == -math.inf)
        return inside and (number < self.below or self.below == math.inf) and not (self.finite and math.isinf(number))

    def __str__(self) -> str:
        *most, last = [word or "nothing" for word in self.one_of] or [""]
        words = f"{', '.join(most)} or {last}" if most else last
        return f"{self._range()}, or {words}" if words and self.is_number else words or self._range()

    def _range(self) -> str:
        parts = []
        if math.isfinite(self.above):
            parts.append(f"above {self.above:g}")
        if math.isfinite(self.low):
            parts.append(f"from {self.low:g}" if math.isfinite(self.high) or math.isfinite(self.below) else f"{self.low:g} or more")
        if math.isfinite(self.high):
            parts.append(f"up to {self.high:g}")
        if math.isfinite(self.below):
            parts.append(f"below {self.below:g}")
        bounds = " ".join(parts) + (" and finite" if self.finite else "")
        return f"{self.unit or 'a number'}, {bounds}" if parts else f"{self.unit or 'a number'}{bounds}"


def param(
    help: str,
    *,
    one_of: Iterable[str] = (),
    low: float = -math.inf,
    above: float = -math.inf,
    high: float = math.inf,
    below: float = math.inf,
    finite: bool = False,
    unit: str = "",
) -> dict[str, object]:
    """Metadata of a parameter: ``slack: float = field(default=1.0, metadata=param("...", low=0.0, unit="seconds"))``."""
    return {"help": help, "takes": Takes(tuple(one_of), low, above, high, below, finite, unit)}


def parameter(default: Default, help: str, **takes: Any) -> Default:
    """A field that is a parameter: ``slack: float = parameter(1.0, "...", low=0.0, unit="seconds")``; `takes` are those of `param`."""
    return field(default=default, metadata=param(help, **takes) if takes else {"help": help})


class Source(IntEnum):
    """Where an estimate comes from, best first."""

    ORACLE = 0  # simulation only: the truth
    MEASURED = 1  # reported by the job while it runs
    PROFILED = 2
    DECLARED = 3  # what the user said
    SIMILAR = 4  # history of the same user, name and size
    LIMIT = 5  # the time limit
    DEFAULT = 6  # mean residual life


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with a range and a source."""

    value: float
    low: float
    high: float
    source: Source

    @staticmethod
    def exact(value: float) -> Estimate:
        return Estimate(value, value, value, Source.ORACLE)


#: What a policy may declare in `needs`, and what provides it.
NEEDS = {
    "remaining": "estimated remaining work (oracle, noisy, history or a declared duration)",
    "rates": "speed per device type (options with rates, a throughput table)",
    "scaling": "speed per number of devices",
    "pairs": "speed of jobs that share a device",
    "deadlines": "a deadline per job",
    "some-deadline": "a deadline of at least one job",
    "carbon": "the carbon intensity of the grid over time (--carbon FILE.csv)",
    "power": "the watts of devices (--power)",
    "prices": "the prices of devices (--prices)",
}


@dataclass(frozen=True)
class Policy:
    """Base of all policies. Subclasses are frozen dataclasses whose fields are the parameters; they keep no other state.

    What a parameter means and takes is metadata of its field: ``limit: float = field(default=1.0, metadata=param("...", low=0.0))``
    (`gantline.core.policy`). It is checked here; a class with a `__post_init__` of its own calls this one first.
    """

    name: ClassVar[str] = ""
    paper: ClassVar[str] = ""  # citation
    needs: ClassVar[frozenset[str]] = frozenset()  # see estimates.NEEDS
    ranks: ClassVar[bool] = False  # whether its plans are rankings; others are shown only jobs whose quota lets them run
    shares_devices: ClassVar[bool] = False  # whether it gives jobs that ask for a part of a device (metric `gpu_demand`) that part
    names_devices: ClassVar[bool] = False  # whether its plans name the devices of every gang: placement rules then decide nothing
    keeps_reservations: ClassVar[bool] = False  # whether it gives jobs the devices that are reserved for them (`jobs.reserved`)
    believes: ClassVar[bool] = False  # whether it decides by models that are fitted to what jobs have shown, where they run by profiles
    node_sizes: ClassVar[bool] = False  # whether it wants gangs of powers of two within a node and of whole nodes beyond it, and no others
    usual_round: ClassVar[float] = 0.0  # seconds between its decisions as its paper has them; 0: it decides on events
    ties: ClassVar[str] = "equal ranks: the earlier arrival first, then the order of the trace"

    def __post_init__(self) -> None:
        """Refuse a parameter that is none of what its field takes."""
        for item in fields(self):
            takes, value = item.metadata.get("takes"), getattr(self, item.name)
            if isinstance(takes, Takes) and not takes.admits(value):
                shown = f"'{value}'" if isinstance(value, str) else value
                where = f"policy '{self.name or type(self).__name__}'"
                raise UsageError(f"parameter '{item.name}' is {shown}", where=where, fix=f"give {takes}")

    def decide(self, snapshot: Snapshot) -> Plan:
        """The plan for this instant: a pure function of the snapshot, its memory and its seed.

        It reads no clock, file, socket or global generator (`snapshot.rng(name)` is its randomness), writes to nothing it is handed, and
        keeps nothing in the policy object: what it must remember it returns as `plan.memory`. It is asked when something has
        happened (a job came or ended, a node changed, a lease or speed ended) and at `plan.valid_until`, or every round.
        Whoever raises, answers with something else than a `Plan`, or takes too long loses its turn: the last valid plan stands.
        """
        raise TypeError(f"policy '{type(self).__name__}' has no decide()")

    def alternatives(self, snapshot: Snapshot, plan: Plan, count: int) -> Sequence[Plan]:
        """Up to so many other plans that are as good as its own `plan` by its own standard: the same gangs with as many devices, elsewhere.

        For policies that work on top of another and choose where gangs go, as CASSINI does: the memory of the plan that was chosen is what
        the next snapshot carries. None: a plan that names no devices leaves places open, and one that names them stands.
        """
        return ()

    def only_starts(self) -> bool:
        """Whether its plans leave everyone who runs alone, so that it need not be asked while nobody waits."""
        return False

    def order_moves(self) -> bool:
        """Whether its ranking turns against jobs that run although nothing has happened, as by attained service or usage.

        Where real programs run, such an order stops jobs for others in turns (`up --turn`), not whenever it is asked.
        """
        return False

    @property
    def promises(self) -> bool:
        """Whether it promises deadlines to those it lets in; a run whose delays its plans cannot know is then refused."""
        return False

    @property
    def observed(self) -> Policy:
        """The policy itself, where this is one that watches another."""
        return self

    def for_regime(self, regime: str) -> Policy:
        """The policy as it behaves in that regime; parameters that mean 'as the regime does' are settled here."""
        return self

    def unread(self, regime: str) -> tuple[str, ...]:
        """Parameters that say nothing in that regime, or beside the others as they are set: a run that sets them is refused."""
        return ()

    def members(self) -> Sequence[Policy]:
        """Policies that decide for it, with parameters of their own."""
        return ()

    def counted(self, memory: object) -> dict[str, int]:
        """What it has counted throughout a run, by its last memory, for the summary of the run."""
        return {}

    def summary_of(self, model: Any, seed: int) -> dict[str, Any]:
        """What it adds to the summary of a run with this performance model, such as how far off its estimates were."""
        return {}


@dataclass(frozen=True)
class OrderPolicy(Policy):
    """A policy that is an order: smaller key first, ties by (arrival, id)."""

    ranks: ClassVar[bool] = True
    misfit: ClassVar[Misfit] = Misfit.SKIP
    preempt: ClassVar[bool] = True

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        """One number per job of the snapshot."""
        raise TypeError(f"policy '{type(self).__name__}' has no key()")

    def by_key(self) -> bool:
        """Whether its plans are its `key()`, with gaps filled as `backfill_depth()` says, and nothing else.

        Then simulations may evaluate the key in compiled code and never ask for a plan. A class with a `decide()` of its own is asked,
        unless it says this itself.
        """
        return type(self).decide is OrderPolicy.decide

    def backfill_depth(self) -> float:
        """How many jobs that do not fit are promised a time, which jobs that pass them keep (EASY: 1, conservative: infinity); 0: none."""
        return 0.0

    def only_starts(self) -> bool:
        """An order changes nothing while no job waits; False: asked all the same, because what it remembers depends on when it is asked."""
        return True

    def valid_until(self, snapshot: Snapshot) -> float | None:
        """When the order might change although nothing happens; None: ask again next round."""
        return None

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(self.key(snapshot), misfit=self.misfit, preempt=self.preempt, valid_until=self.valid_until(snapshot))


def runs_by_key(policy: OrderPolicy) -> bool:
    """Whether it says so of its own `decide()`: not where a class inherits its `by_key()` and has a `decide()` of its own."""
    definers = [next(place for place, kind in enumerate(type(policy).__mro__) if name in vars(kind)) for name in ("by_key", "decide")]
    return definers[0] <= definers[1] and bool(policy.by_key())


@dataclass(frozen=True, slots=True)
class Parameter:
    """One typed parameter of a policy, for `gantline policy show`."""

    name: str
    type: str
    default: Any
    help: str
    takes: str = ""  # which values, in words; empty: any of that type


def parameters(policy: type[Policy]) -> list[Parameter]:
    """The parameters of a policy class, in order."""
    hints = _hints(policy)  # type: ignore[arg-type]
    listed = []
    for item in fields(policy):
        default = item.default
        if default is MISSING and item.default_factory is not MISSING:
            default = item.default_factory()
        shown = getattr(hints[item.name], "__name__", None) or str(hints[item.name])
        if "[" in str(hints[item.name]) or "|" in str(hints[item.name]):
            shown = str(hints[item.name]).replace("typing.", "")
        listed.append(Parameter(item.name, shown, default, item.metadata.get("help", ""), str(item.metadata.get("takes", ""))))
    return listed


@lru_cache(maxsize=64)
def _hints(policy: Any) -> dict[str, Any]:
    """The types of a policy's parameters; a sweep asks for them at every run."""
    return get_type_hints(policy)


def changed(policy: Policy) -> list[str]:
    """The parameters that are not as they are by default."""
    return [item.name for item in fields(policy) if getattr(policy, item.name) != _default(item)]


def _default(item: Field[object]) -> object:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def build(policy: type[Policy], settings: dict[str, Any]) -> Policy:
    """A policy with the given parameters; strings are converted to the parameter's type."""
    hints = _hints(policy)  # type: ignore[arg-type]
    known = {item.name: item for item in fields(policy)}
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in known:
            where = f"policy '{policy.name or policy.__name__}'"
            fix = near(name, known) if known else "it has no parameters"
            raise UsageError(f"no parameter '{name}'", where=where, fix=fix)
        values[name] = _convert(policy, name, hints[name], value)
    try:
        return policy(**values)
    except GantlineError:
        raise
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        file = trace.tb_frame.f_code.co_filename if trace is not None else ""
        place = f" ({file}:{trace.tb_lineno})" if trace is not None and file not in (__file__, "<string>") else ""
        what = f"cannot be made: {type(error).__name__}: {error}{place}"
        raise UsageError(what, where=f"policy '{policy.name or policy.__name__}'") from error


def _convert(policy: type[Policy], name: str, hint: Any, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    shown = str(hint)
    try:
        if hint is bool or shown.startswith("bool"):
            if text.lower() in {"1", "true", "yes", "on"}:
                return True
            if text.lower() in {"0", "false", "no", "off"}:
                return False
            raise ValueError
        if "None" in shown and text.lower() in {"none", ""}:
            return None
        if shown.startswith(("tuple[float", "tuple[int")):
            number = int if "int" in shown else float
            return tuple(number(part) for part in text.replace(";", ",").split(",") if part.strip())
        if shown.startswith("tuple[str"):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if hint is int or shown.startswith("int"):
            return int(text)
        if hint is float or shown.startswith("float"):
            return float(text)
    except ValueError:
        wanted = getattr(hint, "__name__", shown)
        raise UsageError(
            f"parameter '{name}' is '{value}', not a {wanted}",
            where=f"policy '{policy.name or policy.__name__}'",
            fix=f"--set {name}=VALUE",
        ) from None
    return text
