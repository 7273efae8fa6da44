"""A grid: policies x loads x seeds x any parameter, as a list of named settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from gantline.core.errors import GantlineError, UsageError, near
from gantline.core.fields import key_values
from gantline.core.policy import Policy
from gantline.lab.experiment.setting import MANY, Setting
from gantline.traces.files.policies import is_settings_file, opened, policy_class


@dataclass(frozen=True)
class PolicyChoice:
    """A policy with parameters, under the name by which tables and figures call it. `handed`: see `Setting`."""

    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    handed: Policy | type[Policy] | None = None

    @classmethod
    def of(cls, given: Policy | type[Policy], settings: Mapping[str, Any] | None = None) -> PolicyChoice:
        """A policy of one's own, or the class of one: called by its own name, with the parameters that are not the usual ones."""
        if isinstance(given, type):
            return cls(_own_name(given), dict(settings or {}), handed=given)
        name = _own_name(type(given))
        text = " ".join([name, *(f"{key}={_shown(value)}" for key, value in _unusual(given).items())])
        return cls(name, dict(settings or {}), text, given)

    @property
    def title(self) -> str:
        """Its name, or the policy with what was set."""
        text = " ".join(f"{key}={value}" for key, value in self.settings.items())
        return self.name or f"{_label(self.policy)} {text}".strip()


def policies_of(texts: Sequence[str]) -> tuple[PolicyChoice, ...]:
    """Policies from ``fifo``, ``fifo,las`` and ``tiresias limits=3600,36000 promote=2``."""
    found = []
    for text in texts:
        name, *settings = text.split()
        if settings:
            found.append(PolicyChoice(name, key_values(settings, f"--policy '{name} ...'")))
        else:
            found += [PolicyChoice(part) for part in name.split(",") if part]
    return tuple(found)


@dataclass(frozen=True)
class Case:
    """One run of a grid: its policy, its value on each axis, and its setting."""

    policy: str
    axes: Mapping[str, Any]
    parameters: Mapping[str, Any]
    """The varied parameters of this policy alone, which are part of its name too."""
    setting: Setting
    hash: str

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return " ".join([self.policy, *(f"{key}={value}" for key, value in self.axes.items())])


_FLAGS = {"seed": "seeds", "load": "load"}


@dataclass(frozen=True)
class Grid:
    """`base` with every combination of the values. `vary` maps names that `Setting.with_value` knows to lists of values;
    `NAME.parameter` varies a parameter of the policy that is called NAME, and leaves the others alone."""

    base: Setting
    policies: tuple[PolicyChoice, ...]
    loads: tuple[float, ...] = ()
    seeds: tuple[int, ...] = (0,)
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    """Values of `vary` that tables call otherwise."""

    def __post_init__(self) -> None:
        titles = [choice.title for choice in self.policies]
        if not titles:
            raise UsageError("names no policy", where="policies", fix="give at least one")
        for what, values in (("policies", titles), ("loads", self.loads), ("seeds", self.seeds), *self.vary.items()):
            twice = {str(value) for value in values if list(values).count(value) > 1}
            if twice:
                raise UsageError(f"names {', '.join(sorted(twice))} twice", where=what, fix="give each value once")
            if not values and what not in ("loads",):
                raise UsageError("has no values", where=what, fix="give at least one")

        if "seed" in self.vary or ("load" in self.vary and self.loads):
            name = "seed" if "seed" in self.vary else "load"
            raise UsageError(f"'{name}' is an axis of its own", where=f"vary: {name}", fix=f"give its values by --{_FLAGS[name]}")

    def refuse_values_beside_axes(self) -> None:
        """Refuse a field that is varied and has a value of its own, which no run would have."""
        for name in self.vary:
            if name in MANY and (value := getattr(self.base, name)) != MANY[name].default:
                what = f"'{name}' is varied, so that {value} would be ignored"
                raise UsageError(what, where=f"vary: {name}", fix="leave one of them out")

    def cases(self) -> list[Case]:
        """All runs, those with the same jobs next to each other; unknown names are refused before any of them runs."""
        common = {name: tuple(values) for name, values in self.vary.items() if self._owner(name) is None}
        outer = {"load": self.loads or (None,), **common, "seed": self.seeds}
        found = []
        for values in product(*outer.values()):
            axes = dict(zip(outer, values))
            for choice in self.policies:
                found += self._of_policy(choice, {name: value for name, value in axes.items() if value is not None})
        self._refuse_same_values(found)
        return found

    def _refuse_same_values(self, cases: Sequence[Case]) -> None:
        """Refuse values of an axis that mean the same, such as 60 and 1m: they would be one run under two names."""
        first: dict[tuple[str, frozenset[str]], dict[str, object]] = {}
        for case in cases:
            place = {**case.axes, **case.parameters}
            other = first.setdefault((case.hash, frozenset(place)), place)
            for name in self.vary:
                if name in place and str(place[name]) != str(other[name]):
                    what = f"'{other[name]}' and '{place[name]}' mean the same"
                    raise UsageError(what, where=f"vary: {name}", fix="leave one of them out")

    def _of_policy(self, choice: PolicyChoice, axes: dict[str, Any]) -> list[Case]:
        own = {name: values for name, values in self.vary.items() if self._owner(name) == choice.title}
        setting = replace(self.base, policy=choice.policy, settings=dict(choice.settings), handed=choice.handed)
        for name, value in axes.items():
            setting = setting.with_value(name, value)
        found = []
        for values in product(*own.values()):
            given = {name[len(choice.title) + 1 :]: value for name, value in zip(own, values)}
            one = setting
            for name, value in given.items():
                one = one.with_value(f"policy.{name}", value)
            one = one.pinned()
            one.check()
            label = " ".join([choice.title, *(f"{name}={_shown(value)}" for name, value in given.items())])
            parameters = {name: _shown(value) for name, value in zip(own, values)}
            shown = {name: self.titles.get(str(value), _shown(value)) for name, value in axes.items()}
            found.append(Case(label, shown, parameters, one, one.hash))
        return found

    def _owner(self, name: str) -> str | None:
        """The policy whose parameter the name is; None for names of the whole run."""
        part, _, inner = name.rpartition(".")
        if not inner or part in ("", "trace", "policy"):
            return None
        titles = [choice.title for choice in self.policies]
        if part not in titles:
            raise UsageError(f"'{part}' is none of the policies", where=f"vary: {name}", fix=near(part, [*titles, "trace", "policy"]))
        return part


def _label(policy: str) -> str:
    """What a policy calls itself: its name, or for a class in a file its own name rather than the path, and its settings where the file
    holds them."""
    if is_settings_file(policy):
        name, settings = opened(policy)
        return " ".join([_label(name), *(f"{key}={_shown(value)}" for key, value in settings.items())])
    file = Path(policy.partition(".py")[0] + ".py")
    return _label_in(policy, file.stat().st_mtime_ns) if ".py" in policy and file.is_file() else policy


@lru_cache(maxsize=64)
def _label_in(policy: str, changed: int) -> str:
    """The same for a file as it was changed last."""
    try:
        found = policy_class(policy)
    except GantlineError:  # reported when the policy is checked
        return policy
    return _own_name(found)


def _own_name(policy: type[Policy]) -> str:
    own = vars(policy).get("name", "")  # one that is inherited belongs to another policy
    return str(own) or policy.__name__


def _unusual(policy: Policy) -> dict[str, Any]:
    """The parameters that are not the default ones."""
    found = {}
    for item in fields(policy):
        usual = item.default if item.default_factory is MISSING else item.default_factory()
        if repr(getattr(policy, item.name)) != repr(usual):
            found[item.name] = getattr(policy, item.name)
    return found


def _shown(value: Any) -> Any:
    """A value that a column of a table can hold."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
