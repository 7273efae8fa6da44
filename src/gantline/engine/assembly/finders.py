"""What options name: text in, the rule, the table or the regime out. Things that come from Python are already found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gantline.core.cluster import Cluster
from gantline.core.costs import Costs
from gantline.core.ending import find_ending
from gantline.core.errors import UsageError
from gantline.core.queues import parse_queues
from gantline.engine.assembly.models import find_model
from gantline.engine.assembly.profile_readers import read_profiles_for
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.regime import find_regime
from gantline.models.estimate_chain import find_estimates
from gantline.policies.admission.rules import find_admission
from gantline.traces.files.device_tables import read_prices
from gantline.traces.files.policies import placement_of


def _node_events(path: str, cluster: Cluster) -> Any:
    if not path:
        return ()
    from gantline.traces.files.clusters import read_node_events

    return read_node_events(Path(path), cluster)


def _windows(text: str, cluster: Cluster) -> Any:
    if not text:
        return ()
    from gantline.core.windows import parse_windows

    return parse_windows(text)


def _throughputs(path: str, cluster: Cluster) -> Any:
    if not path:
        return None
    from gantline.traces.files.speeds import read_throughputs

    return read_throughputs(path)


def _power(text: str, cluster: Cluster) -> Any:
    if not text:
        return {}
    from gantline.traces.files.device_tables import read_power

    return read_power(text)


def _carbon(path: str, cluster: Cluster) -> Any:
    if not path:
        return None
    from gantline.traces.files.signals import read_carbon

    return read_carbon(path)


def _electricity(text: str, cluster: Cluster) -> Any:
    if not text:
        return None
    from gantline.traces.files.signals import read_electricity

    return read_electricity(text)


def _device_speeds(path: str, cluster: Cluster) -> Any:
    if not path:
        return None
    from gantline.traces.files.device_tables import read_device_speeds

    return read_device_speeds(path, cluster)


#: option -> what finds the thing from a text; where nothing is named, the text is empty
FINDERS: dict[str, Callable[[str, Cluster], Any]] = {
    "placement": lambda text, _: placement_of(text),
    "admission": lambda text, _: find_admission(text),
    "queues": lambda text, _: parse_queues(text),
    "regime": lambda text, _: find_regime(text),
    "estimates": lambda text, _: find_estimates(text),
    "performance": lambda text, _: find_model(text),
    "end_by": lambda text, _: find_ending(text),
    "costs": lambda text, _: Costs.parse(text),
    "node_events": _node_events,
    "reserve": _windows,
    "throughputs": _throughputs,
    "prices": lambda text, _: read_prices(text or None),
    "power": _power,
    "carbon": _carbon,
    "electricity": _electricity,
    "device_speeds": _device_speeds,
}
#: the options that name something
NAMING = (*FINDERS, "profiles")


def find(spec: RunSpec, name: str, cluster: Cluster) -> Any:
    """The thing that an option means, on this cluster; an unknown name is refused."""
    value = getattr(spec, name)
    if name == "placement":
        return placement_of(value)
    if name == "profiles":
        return read_profiles_for(spec)
    return FINDERS[name](value, cluster) if isinstance(value, str) else value


def options_set(spec: RunSpec, cluster: Cluster) -> dict[str, str]:
    """The options that do not mean what they mean by default: name -> flag."""

    def meaning(one: RunSpec, name: str) -> Any:
        return find(one, name, cluster) if name in FINDERS else getattr(one, name)  # a folder of profiles is read once, later

    usual = RunSpec()
    return {name: option.flag for name, option in OPTIONS.items() if meaning(spec, name) != meaning(usual, name)}


def usual_cluster(spec: RunSpec) -> str:
    """The cluster of a run that was given none: only regimes which buy machines as they need them have one."""
    regime = find_regime(spec.regime) if isinstance(spec.regime, str) else spec.regime
    if not regime.cluster:
        raise UsageError("no cluster is given", where="--cluster", fix="name one, such as 32x4 (nodes x GPUs) or a YAML file")
    return regime.cluster


def with_found(spec: RunSpec, cluster: Cluster) -> RunSpec:
    """The same options with the things in place of their names: each is looked up, and refused, before the work begins."""
    return replace(spec, **{name: find(spec, name, cluster) for name in NAMING})
