"""A setting: one frozen value that describes one run completely, and its content hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from gantline.core.errors import RefusedError, UsageError, near
from gantline.core.fields import mapping, plain_values, text
from gantline.core.policy import Policy
from gantline.engine.assembly.finders import NAMING, find
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.lab.experiment.digest import file_digest, value_digest
from gantline.lab.experiment.trace_source import TraceSource
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files.clusters import is_cluster_file, read_cluster
from gantline.traces.files.policies import policy_file, policy_of
from gantline.traces.files.python_file import python_file

SCHEMA = 1
"""Part of every hash; raised when the meaning of a field changes, so that old results are not taken for new ones."""

MANY = {name: known for name, known in OPTIONS.items() if not known.single}
"""The options that runs of an experiment may have."""

_OWN: dict[str, Callable[[Any, str], Any]] = {"cluster": text, "policy": text, "settings": mapping, "files": mapping}
"""What a setting has beside the options of a run."""


@dataclass(frozen=True)
class Setting(RunSpec):
    """A run, fully described. Texts mean what they mean to `simulate`; `files` holds the hashes of files it depends on.

    A policy object made in this process is `handed`, and `policy` is its name: no text can describe what it does, so such a
    run stays in this process, and is made anew every time.
    """

    trace: TraceSource
    cluster: str
    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    handed: Policy | type[Policy] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in MANY:
            value = getattr(self, name)
            if any(not isinstance(item, (str, int, float, type(None))) for item in (value if isinstance(value, tuple) else (value,))):
                raise UsageError("must be a name, because a setting is a text", where=name, fix="give it as on the command line")

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Setting:
        """A setting from the mapping that `to_dict` gives; a mistake names its field."""
        known = {"trace", *_OWN, *MANY}
        for key in given:
            if key not in known:
                raise UsageError(f"unknown field '{key}'", where="setting", fix=near(str(key), known))
        for key in ("trace", "cluster", "policy"):
            if not given.get(key):
                raise UsageError(f"lacks '{key}'", where="setting")
        values = {key: _OWN[key](value, key) if key in _OWN else value for key, value in given.items() if value is not None}
        return cls(**(values | {"trace": TraceSource.read(given["trace"])}))

    def to_dict(self) -> dict[str, Any]:
        """The setting as plain values that JSON and YAML can hold, without fields that keep their default."""
        found = {"trace": self.trace.to_dict(), "cluster": self.cluster, "policy": self.policy}
        found |= {key: plain_values(value) for key, value in (("settings", self.settings), ("files", self.files)) if value}
        for name, known in MANY.items():
            value = getattr(self, name)
            if value != known.default:
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

    def with_value(self, name: str, value: Any) -> Setting:
        """With another value of a field, of a parameter of the trace (`trace.jobs`) or of the policy (`policy.limits`)."""
        part, _, inner = name.partition(".")
        if inner and part == "trace":
            return replace(self, trace=self.trace.with_value(inner, value))
        if inner and part == "policy":
            return replace(self, settings={**self.settings, inner: value})
        if name == "load":
            return replace(self, trace=self.trace.with_load(value))
        if name not in ("cluster", "policy", "settings", *MANY):
            raise UsageError(f"nothing called '{name}' can be varied", fix=near(name, [*_OWN, *MANY, "load", "trace.NAME", "policy.NAME"]))
        return replace(self, **{name: _OWN[name](value, name) if name in _OWN else value})

    def named_files(self) -> dict[str, str]:
        """The files that options name, under their fields: node events, throughputs, profiles, prices."""
        return {name: getattr(self, name) for name, known in MANY.items() if known.names_file(getattr(self, name))}

    def named_code(self) -> tuple[str, ...]:
        """The options that name a rule or a model in a Python file."""
        return tuple(name for name in ("placement", "performance") if python_file(str(getattr(self, name))))

    def pinned(self) -> Setting:
        """The same setting with the hash of every file it depends on: trace, cluster, policy, tables."""
        named = self.trace.files() | self.named_files()
        if is_cluster_file(self.cluster):
            named["cluster"] = self.cluster
        if file := policy_file(self.policy):
            named["policy"] = file
        named |= {name: python_file(getattr(self, name)) for name in self.named_code()}
        return replace(self, files={part: file_digest(path) for part, path in sorted(named.items())})

    @property
    def hash(self) -> str:
        """The content hash: equal for settings that mean the same run, wherever their files lie."""
        whole = self if self.files else self.pinned()
        described = whole.to_dict()
        described |= {name: digest for name, digest in whole.files.items() if name in described and name != "trace"}
        for name in self.named_code():
            described[name] += str(getattr(self, name)).partition(".py")[2]
        described["settings"] = self._parameters()
        described["trace"] = {key: value for key, value in described["trace"].items() if key != "file"}
        if self.handed is not None:
            described["handed"] = True  # whatever it calls itself, it is not the policy that goes by that name
        return value_digest({"schema": SCHEMA, "setting": described})

    def check(self, names: Iterable[str] | None = None) -> None:
        """Refuse now what could not be run later: unknown names, wrong parameters, a cluster that cannot be read."""
        wanted = ("policy", "cluster", *NAMING) if names is None else tuple(names)
        if "policy" in wanted:
            self._parameters()
        cluster = read_cluster(self.cluster)
        named = self.named_files()
        for name in wanted:
            if name in named and name in self.files:
                self._table(name, named[name], self.files[name])  # read once for all settings that name it
            elif name in NAMING:
                find(self, name, cluster)

    def make_policy(self) -> Policy:
        """The policy with its parameters."""
        return policy_of(self.policy if self.handed is None else self.handed, self.settings)

    def _parameters(self) -> dict[str, Any]:
        """All parameters of the policy, those not given too: a new default is another run."""
        policy = self.make_policy()
        return {item.name: getattr(policy, item.name) for item in fields(policy)}

    def tables(self) -> dict[str, Any]:
        """What the named files hold; a worker reads each once for all its runs."""
        return {name: self._table(name, path, file_digest(path)) for name, path in self.named_files().items()}

    def _table(self, name: str, path: str, digest: str) -> object:
        return _table(name, path, digest, self.cluster, str(self.regime), str(self.performance))


def run_setting(setting: Setting, key: str = "") -> Run:
    """Run it. The summary holds the setting and its hash, which is `key` where it is known already."""
    _verify(setting)
    trace = setting.trace.with_throughputs(setting.named_files().get("throughputs", "")).load(setting.seed)
    run = simulate(trace, setting.cluster, setting.make_policy(), spec=setting, **setting.tables())
    run.summary["setting"] = setting.to_dict()
    run.summary["setting_hash"] = key or setting.hash
    return run


@lru_cache(maxsize=8)
def _table(name: str, path: str, digest: str, cluster: str, regime: str, performance: str) -> object:
    """What a file of this content holds; a folder of profiles is read as the regime or the model has them."""
    return find(RunSpec.of({name: path, "regime": regime, "performance": performance}), name, read_cluster(cluster))


def _verify(setting: Setting) -> None:
    """Refuse files that changed after the setting was pinned: the result would stand under the wrong hash."""
    if setting.files and setting.pinned().files != setting.files:
        now = setting.pinned().files
        changed = sorted(part for part in setting.files if now.get(part) != setting.files[part])
        raise RefusedError(f"the file of the {' and the '.join(changed)} has changed since the experiment was set up")


# Paths seen from somewhere else: those in an experiment file are seen from the file's own folder.

Move = Callable[[str], str]


def move_setting(setting: Setting, move: Move) -> Setting:
    """The setting with every path in it moved: trace, cluster file, policy file, tables."""
    cluster = move(setting.cluster) if is_cluster_file(setting.cluster) else setting.cluster
    tables: dict[str, Any] = {name: move(path) for name, path in setting.named_files().items()}
    tables |= {name: move_policy(getattr(setting, name), move) for name in setting.named_code()}
    return replace(setting, trace=_move_trace(setting.trace, move), cluster=cluster, policy=move_policy(setting.policy, move), **tables)


def _move_trace(source: TraceSource, move: Move) -> TraceSource:
    """The trace's file, and files that are options of its format."""
    if not source.file:
        return source
    named = {name: move(str(value)) for name, value in source.settings.items() if name in source.path_options()}
    return replace(source, file=move(source.file), settings={**source.settings, **named})


def move_policy(policy: str, move: Move) -> str:
    """A policy's name, or its file moved: ``mine.py:Mine``."""
    file, sign, name = policy.partition(":")
    return f"{move(file)}{sign}{name}" if policy_file(file) == file else policy
