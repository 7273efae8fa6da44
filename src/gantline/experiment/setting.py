"""A setting: one frozen value that says everything about one run, and its content hash."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantline.core.errors import RefusedError, UsageError, near
from gantline.experiment.digest import file_digest, value_digest
from gantline.experiment.fields import duration, mapping, plain_values, text, text_or_none, track, whole, yes_or_no
from gantline.experiment.source import TraceSource

if TYPE_CHECKING:
    from gantline.core.node_events import NodeEvent
    from gantline.performance.goodput.measured import Profiles
    from gantline.performance.throughput_table import ThroughputTable
    from gantline.simulator.run import Run

SCHEMA = 1
"""Part of every hash; raised when the meaning of a field changes, so that old results are not taken for new ones."""

FILE_FIELDS = ("node_events", "throughputs", "profiles", "prices")
"""Fields that name a file or a folder; prices may also be written out."""

CHECKED = ("policy", "cluster", "placement", "admission", "regime", "estimates", "costs", *FILE_FIELDS)
"""Fields whose texts are names that something else must know."""

_READERS: dict[str, Callable[[Any, str], Any]] = {
    "cluster": text,
    "policy": text,
    "settings": mapping,
    "placement": text,
    "admission": text,
    "regime": text,
    "round": duration,
    "estimates": text,
    "costs": text_or_none,
    "min_run": duration,
    "latency": duration,
    "seed": whole,
    "track": track,
    "until": duration,
    "node_events": text_or_none,
    "throughputs": text_or_none,
    "across_nodes": yes_or_no,
    "profiles": text_or_none,
    "prices": text_or_none,
    "files": mapping,
}


@dataclass(frozen=True)
class Setting:
    """A run, fully described. Texts mean what they mean to `simulate`; `files` holds the hashes of files it depends on."""

    trace: TraceSource
    cluster: str
    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    placement: str = "first-free"
    admission: str = "accept-all"
    regime: str = "default"
    round: float | None = None
    estimates: str = "oracle"
    costs: str = ""
    min_run: float = 0.0
    latency: float = 0.0
    seed: int = 0
    track: tuple[int, int] | None = None
    until: float = math.inf
    node_events: str = ""
    throughputs: str = ""
    across_nodes: bool = False
    profiles: str = ""
    prices: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Setting:
        """A setting from the mapping that `to_dict` gives; a mistake names its field."""
        known = {"trace", *_READERS}
        for key in given:
            if key not in known:
                raise UsageError(f"unknown field '{key}'", where="setting", fix=near(str(key), known))
        for key in ("trace", "cluster", "policy"):
            if not given.get(key):
                raise UsageError(f"lacks '{key}'", where="setting")
        values = {key: _READERS[key](value, key) for key, value in given.items() if key != "trace" and value is not None}
        return cls(TraceSource.read(given["trace"]), **values)

    def to_dict(self) -> dict[str, Any]:
        """The setting as plain values that JSON and YAML can hold, without fields that keep their default."""
        found: dict[str, Any] = {"trace": self.trace.to_dict()}
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if item.name in ("cluster", "policy") or (value != item.default and value != {}):
                found[item.name] = list(value) if isinstance(value, tuple) else plain_values(value) if isinstance(value, Mapping) else value
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
        if name not in _READERS or name == "files":
            known = [*(key for key in _READERS if key != "files"), "load", "trace.NAME", "policy.NAME"]
            raise UsageError(f"nothing called '{name}' can be varied", fix=near(name, known))
        return replace(self, **{name: _READERS[name](value, name)})

    def named_files(self) -> dict[str, str]:
        """The files that are given by name, under their fields: node events, throughputs, profiles, prices."""
        given = {name: getattr(self, name) for name in FILE_FIELDS}
        return {name: path for name, path in given.items() if path and not (name == "prices" and "=" in path)}

    def pinned(self) -> Setting:
        """The same setting with the hash of every file it depends on: trace, cluster, policy, tables."""
        named = self.trace.files() | self.named_files()
        if self.cluster.endswith((".yaml", ".yml")):
            named["cluster"] = self.cluster
        if ".py" in self.policy:
            named["policy"] = self.policy.partition(".py")[0] + ".py"
        return replace(self, files={part: file_digest(path) for part, path in sorted(named.items())})

    @property
    def hash(self) -> str:
        """The content hash: equal for settings that mean the same run, wherever their files lie."""
        whole = self if self.files else self.pinned()
        described = whole.to_dict()
        for name in ("cluster", "policy", *FILE_FIELDS):
            if name in whole.files:
                described[name] = whole.files[name]
        described["settings"] = _parameters(self.policy, self.settings)
        described["trace"] = {key: value for key, value in described["trace"].items() if key != "file"}
        return value_digest({"schema": SCHEMA, "setting": described})

    def check(self, names: Iterable[str] = CHECKED) -> None:
        """Refuse now what could not be run later: unknown names, wrong parameters, a cluster that cannot be read."""
        from gantline.admission.rules import find_admission
        from gantline.engine.regime import find_regime
        from gantline.files.clusters import read_cluster
        from gantline.files.prices import read_prices
        from gantline.performance.costs import Costs
        from gantline.performance.estimate_chain import find_estimates
        from gantline.placement.rules import find_placement

        checks: dict[str, Callable[[], object]] = {
            "policy": lambda: _parameters(self.policy, self.settings),
            "cluster": lambda: read_cluster(self.cluster),
            "placement": lambda: find_placement(self.placement),
            "admission": lambda: find_admission(self.admission),
            "regime": lambda: find_regime(self.regime),
            "estimates": lambda: find_estimates(self.estimates),
            "costs": lambda: Costs.parse(self.costs),
            "node_events": self.read_node_events,
            "throughputs": self.read_throughputs,
            "profiles": self.read_profiles,
            "prices": lambda: read_prices(self.prices or None),
        }
        for name in names:
            if name in checks:
                checks[name]()

    def read_node_events(self) -> list[NodeEvent]:
        """What happens to nodes, from the file; nothing without one."""
        from gantline.files.clusters import read_cluster
        from gantline.files.node_events import read_node_events

        return read_node_events(Path(self.node_events), read_cluster(self.cluster)) if self.node_events else []

    def read_throughputs(self) -> ThroughputTable | None:
        """Measured speeds, from the file; a worker reads it once for all its runs."""
        return _throughputs(self.throughputs, file_digest(self.throughputs)) if self.throughputs else None

    def read_profiles(self) -> Profiles | None:
        """Measured profiles, from the folder; a worker reads them once for all its runs."""
        return _profiles(self.profiles, file_digest(self.profiles)) if self.profiles else None


def run_setting(setting: Setting) -> Run:
    """Run it. The summary tells the setting and its hash."""
    from gantline.files.policies import load_policy
    from gantline.simulator.simulate import simulate

    _verify(setting)
    run = simulate(
        setting.trace.with_throughputs(setting.throughputs).load(setting.seed),
        setting.cluster,
        load_policy(setting.policy, setting.settings),
        placement=setting.placement,
        admission=setting.admission,
        regime=setting.regime,
        round=setting.round,
        estimates=setting.estimates,
        costs=setting.costs,
        min_run=setting.min_run,
        latency=setting.latency,
        seed=setting.seed,
        track=setting.track,
        until=setting.until,
        node_events=setting.read_node_events(),
        throughputs=setting.read_throughputs(),
        across_nodes=setting.across_nodes,
        profiles=setting.read_profiles(),
        prices=setting.prices or None,
    )
    run.summary["setting"] = setting.to_dict()
    run.summary["setting_hash"] = setting.hash
    return run


@lru_cache(maxsize=4)
def _throughputs(path: str, digest: str) -> ThroughputTable:
    from gantline.files.throughputs import read_throughputs

    return read_throughputs(path)


@lru_cache(maxsize=4)
def _profiles(path: str, digest: str) -> Profiles:
    from gantline.files.profiles import read_profiles

    return read_profiles(path)


def _verify(setting: Setting) -> None:
    """Refuse files that changed after the setting was pinned: the result would stand under the wrong hash."""
    if setting.files and setting.pinned().files != setting.files:
        now = setting.pinned().files
        changed = sorted(part for part in setting.files if now.get(part) != setting.files[part])
        raise RefusedError(f"the file of the {' and the '.join(changed)} has changed since the experiment was set up")


def _parameters(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of the policy, those not given too: a new default is another run."""
    from gantline.core.policy import parameters
    from gantline.files.policies import load_policy

    policy = load_policy(name, settings)
    return {item.name: getattr(policy, item.name) for item in parameters(type(policy))}
