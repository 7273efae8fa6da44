"""What the options of a run name: text in, the rule, the table or the regime out. Things that come from Python are already found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.facts import Costs, PowerGrid
from gantline.core.fields import LONGEST
from gantline.core.policy import Policy
from gantline.core.queues import parse_queues
from gantline.core.windows import parse_windows
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.ending import find_ending
from gantline.engine.preemption_grace import LIVE_STOPS, StopRules
from gantline.engine.regime import find_regime
from gantline.models.estimate_chain import find_estimates
from gantline.models.model import overrides
from gantline.policies.admission.rules import find_admission
from gantline.registry import Register
from gantline.traces.files.clusters import read_node_events
from gantline.traces.files.device_tables import read_device_speeds, read_power, read_prices
from gantline.traces.files.policies import placement_of
from gantline.traces.files.profiles import read_profiles
from gantline.traces.files.signals import read_carbon, read_electricity, start_of
from gantline.traces.files.speeds import read_throughputs
from gantline.traces.performance import find_model

# --- measured profiles: what reads the folder depends on the regime, then on the performance model ----------------------
_READERS = Register("profile_readers", {"pairs": "gantline.traces.files.speeds:read_pair_profiles"}, where="--profiles")
_OF_FILES = frozenset({"pairs"})
"""Readers that take a file as well as a folder."""


def read_profiles_for(spec: RunSpec) -> object:
    """The profiles that the run names, or that it was given; None: it has none."""
    given = spec.profiles
    if not isinstance(given, str):
        return given
    if not given:
        return None
    regime = spec.regime if isinstance(spec.regime, str) else spec.regime.name
    for name in (regime, spec.performance):
        if isinstance(name, str) and _READERS.find(name) is not None:
            path = Path(given)
            if not (path.is_dir() or (path.is_file() and name in _OF_FILES)):
                what = "no such file or folder" if name in _OF_FILES else "no such folder"
                raise NotFoundError(what, where=f"profiles {path}", fix=f"name the folder with the profiles of '{name}'")
            return _READERS.load(name)(path)
    return read_profiles(given)


# --- options by name ----------------------------------------------------------------------------------------------------


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
    "node_events": lambda text, cluster: read_node_events(Path(text), cluster) if text else (),
    "reserve": lambda text, _: parse_windows(text) if text else (),
    "throughputs": lambda text, _: read_throughputs(text) if text else None,
    "prices": lambda text, _: read_prices(text or None),
    "power": lambda text, _: read_power(text) if text else {},
    "carbon": lambda text, _: read_carbon(text) if text else None,
    "electricity": lambda text, _: read_electricity(text) if text else None,
    "device_speeds": lambda text, cluster: read_device_speeds(text, cluster) if text else None,
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


# --- power: the draw of devices, carbon intensity, the price of electricity ---------------------------------------------


def grid_of(spec: RunSpec, cluster: Cluster) -> PowerGrid:
    """The power settings of the options; the series begin at `--series-start`."""
    carbon, electricity, power = (find(spec, name, cluster) for name in ("carbon", "electricity", "power"))
    if spec.series_start:
        if carbon is None and electricity is None:
            raise RefusedError("there is no series to begin in", where="--series-start", fix="give --carbon or --electricity")
        carbon, electricity = (
            one if one is None or one.step == LONGEST else start_of(one, spec.series_start) for one in (carbon, electricity)
        )
    if power:
        for name in power:
            if name not in cluster.types:
                raise RefusedError(f"the cluster has no device type '{name}'", where="--power", fix=near(name, cluster.types))
        for name in cluster.types:
            if name not in power:
                raise RefusedError(f"no power is given for device type '{name}'", where="--power", fix=f"add {name}=BUSY/IDLE")
    if electricity is not None and not power:
        raise RefusedError("a price of power, and nothing that draws any", where="--electricity", fix="give --power TYPE=BUSY/IDLE")
    return PowerGrid(carbon, electricity, power)


# --- how long gangs are not stopped for others --------------------------------------------------------------------------


def stops_of(spec: RunSpec) -> StopRules:
    """Real programs are spared, and so are those that are simulated as such; elsewhere gangs are stopped whenever the policy decides so."""
    usual = LIVE_STOPS if spec.executor == "measured" else StopRules()
    given = {item.name: getattr(spec, item.name) for item in fields(StopRules)}
    return replace(usual, **{name: value for name, value in given.items() if value is not None})


# --- policies that promise deadlines ------------------------------------------------------------------------------------
_IN_TIME = ("instant", "acknowledged")  # executors that take no time beyond the costs


def check_promises(policy: Policy, spec: RunSpec, model: Any) -> None:
    """Refuse a run in which a promise would be made on delays that no plan can know."""
    name = spec.executor.partition(":")[0] if isinstance(spec.executor, str) else ""
    if not policy.promises or name in _IN_TIME or (name == "measured" and not overrides(model, "leave")):
        return
    why = {
        "measured": "jobs take a while to leave their devices, which its plans do not count",
        "faulty": "starts, stops and messages take times that are not known beforehand",
    }.get(name, "how long that executor takes is not known")
    raise RefusedError(
        f"policy '{policy.name or type(policy).__name__}' promises deadlines, and here {why}",
        where=f"--executor {spec.executor if name else type(spec.executor).__name__}",
        fix="admit every job without a promise (--set admission=off), or use another executor",
    )
