"""Which runs are recorded: every policy on the engine, every regime with every policy that it knows, and the settings that imitate.

A new policy or regime is here by itself, because the registries are asked; what it needs beyond its defaults is a line below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gantline.engine.imitations.registry import find_scope
from gantline.engine.regime import regime_names
from gantline.policies.placement.parts.scores import PART_RULES
from gantline.policies.registry import policy_names
from gantline.systems.gaia.policies import SCHEDULING
from gantline.systems.synergy.policies.policy import MECHANISMS
from gantline.systems.synergy.policies.policy import ORDERS as SYNERGY_ORDERS

#: the system whose record holds a policy, where that is neither its name nor the first word of it
SYSTEMS = {
    "gavel": ("gavel",),
    "allox": ("allox", "drf", "drf-ext", "drf-fifo", "drf-sjf", "es", "fs", "irfsim", "irfsim-known"),
    "elasticflow": ("elasticflow", "edf"),
    "lucid": ("lucid", "qssf"),
    "pollux": ("pollux", "adaptdl"),
    "optimus": ("optimus",),
    "sizes": ("afs", "equal-share", "ffdl"),
    "orders": ("fifo", "sjf", "srtf", "srsf", "smallest", "las", "fair-share", "sharing", "synthesizer"),
}
#: the tests that hold a system against what its original did
COMPARISONS = {
    "allox": ("tests/systems/allox",),
    "blox": ("tests/systems/blox",),
    "carbonscaler": ("tests/systems/carbonscaler/test_greedy.py",),
    "elasticflow": ("tests/systems/elasticflow/test_reference.py", "tests/systems/elasticflow/test_baselines.py"),
    "fgd": ("tests/systems/fgd/test_fgd.py",),
    "gaia": ("tests/systems/gaia/test_gaia.py",),
    "gavel": ("tests/systems/gavel/test_gavel_golden.py", "tests/systems/gavel/test_gavel_reference.py"),
    "lucid": ("tests/systems/lucid/test_reference.py", "tests/systems/lucid/test_regime.py"),
    "mapa": ("tests/systems/mapa/test_mapa.py",),
    "muri": ("tests/systems/muri/test_muri_reference.py",),
    "optimus": ("tests/systems/pollux/test_reference.py",),
    "pal": ("tests/systems/pal",),
    "pollux": ("tests/systems/pollux/test_reference.py", "tests/models/goodput/test_fit.py"),
    "shockwave": ("tests/systems/shockwave/test_shockwave_reference.py",),
    "sia": ("tests/systems/sia/test_reference.py", "tests/models/goodput/test_fit.py"),
    "synergy": ("tests/systems/synergy/test_synergy_regime.py",),
    "tiresias": ("tests/systems/tiresias/test_tiresias_reference.py",),
    "voda": ("tests/systems/voda/test_vectors.py", "tests/policies/placement/test_migration.py"),
}
BRIEF: dict[str, dict[str, Any]] = {  # searches long enough to tell one from another
    "adaptdl": {"size": 8, "generations": 6},
    "pollux": {"size": 8, "generations": 6},
    "shockwave": {"window": 4, "beat": 4},
}
MURI_WAYS: tuple[dict[str, Any], ...] = ({"known": True}, {"known": False}, {"matching": False}, {"ordering": "worst"})
ON_TWO_WORLDS = ("rounds", "elastic")
#: where the policies of a system have choices to make, if not there
OWN_WORLDS = {
    "allox": ("cpu or gpu",),
    "antman": ("guests",),
    "gavel": ("two types",),
    "lucid": ("rounds", "pairs"),
    "cassini": ("links",),
    "muri": ("stages",),
}
ORDERS = ("fifo", "las", "srtf", "tiresias")
MAPA_RULES = ("baseline", "topoAware", "greedy", "preserve")
PAL_RULES = ("packed", "packed-sticky", "pm-first", "pal", "random")


@dataclass(frozen=True)
class Recorded:
    """A run that is written down: in whose record, of which policy, where, and with what set."""

    system: str
    policy: str
    world: str
    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def regime(self) -> str:
        name = self.world.partition(",")[0]
        return name if name in regime_names() else "default"

    @property
    def name(self) -> str:
        given = " ".join(f"{key}={value}" for key, value in (self.settings | self.options).items())
        return f"{self.policy} | {self.world}" + (f" | {given}" if given else "")


def system_of(name: str) -> str:
    """The system of a policy or a regime."""
    first = name.partition(".")[0]
    return next((system for system, names in SYSTEMS.items() if first in names), first)


def _on_the_engine(policy: str) -> list[Recorded]:
    """A policy with its defaults, where it has choices to make."""
    system = system_of(policy)
    worlds = OWN_WORLDS.get(system, ON_TWO_WORLDS)
    return [Recorded(system, policy, world, BRIEF.get(policy, {})) for world in worlds]


def _imitated(regime: str) -> list[Recorded]:
    """What a loop of its own makes of the policies that it knows, set as in the comparisons with the original."""
    scope, system = find_scope(regime), system_of(regime)
    assert scope is not None
    if regime == "gavel":
        names = [name for name in policy_names() if name.startswith("gavel.")]
        return [Recorded(system, name, "gavel, one device" if name == "gavel.allox" else "gavel", {"compat": "gavel"}) for name in names]
    if regime == "pal":
        return [Recorded(system, name, regime, {}, {"placement": rule}) for name in scope.policies for rule in PAL_RULES]
    if regime == "gaia":
        return [
            Recorded(system, "gaia", regime, {"start": 0, "scheduling": way} | ({"reserved": 3} if way.endswith("-cost") else {}))
            for way in SCHEDULING
        ]
    if regime == "muri":
        return [Recorded(system, name, regime, way) for name in scope.policies for way in (MURI_WAYS if name == "muri" else ({},))]
    if regime == "synergy":
        pairs = [(order, way) for order in SYNERGY_ORDERS for way in MECHANISMS if (order, way) != ("las", "opt")]
        found = [Recorded(system, "synergy", regime, {"order": order, "mechanism": way}) for order, way in pairs]
        return [*found, Recorded(system, "synergy", regime, {"mechanism": "tune", "place": "consolidated", "mode": "static"})]
    found = []
    for name in scope.policies:
        rigid = {"elasticflow": ("gandiva", "themis", "tiresias"), "sia": ("gavel.finish_time_fairness", "shockwave")}
        world = regime + {"elasticflow": ", rigid", "sia": ", one type"}.get(regime, "") * (name in rigid.get(regime, ()))
        settings = {key: value for key, value in BRIEF.get(name, {}).items() if key in scope.policies[name]}
        if "fit" in scope.policies[name]:
            settings["fit"] = "compiled"
        if regime == "elasticflow" and "compat" in scope.policies[name]:
            settings["compat"] = "elasticflow"
        found.append(Recorded(system, name, world, settings))
    return found


def recorded_runs() -> list[Recorded]:
    """All of them, in the order of the records."""
    found = [run for name in policy_names() if name != "recorded" for run in _on_the_engine(name)]
    for regime in regime_names():
        if find_scope(regime) is not None:
            found += _imitated(regime)
        elif regime != "default":
            found += [Recorded(regime, name, regime, {}, more) for name in ORDERS for more in _ways_of_the_engine(regime)]
    found += [Recorded("synergy", "synergy", "sensitive", {"mechanism": way}) for way in MECHANISMS]
    found += [Recorded("fgd", "sharing", "parts", {"order": order, "seats": rule}) for order in ("fifo", "srtf") for rule in PART_RULES]
    found += [Recorded("mapa", order, "rings", {}, {"placement": f"mapa.{rule}"}) for order in ("fifo", "srtf") for rule in MAPA_RULES]
    found.append(Recorded("sia", "sia", "sia, two jobs", {"fit": "artifact"}))
    found.append(Recorded("shockwave", "shockwave", "shockwave", BRIEF["shockwave"] | {"compat": "shockwave"}))
    found += [Recorded("orders", "synthesizer", world, {"compat": "blox"}) for world in ("rounds", "blox")]
    found.append(Recorded("carbonscaler", "carbonscaler", "elastic", {"compat": "carbonscaler"}))
    found += [Recorded("corners", name, world) for name in ("fifo", "srtf", "las") for world in ("ties", "windows")]
    found += [Recorded("voda", name, "elastic", {"compat": "voda"}) for name in policy_names() if name.startswith("voda.")]
    found += [
        Recorded("elasticflow", "elasticflow", "elasticflow", {"compat": "elasticflow", "admission": word}) for word in ("group", "off")
    ]
    return found


def _ways_of_the_engine(regime: str) -> list[dict[str, Any]]:
    """What the comparisons of a regime vary beside the policy."""
    if regime == "blox":
        return [{"placement": "consolidated"}, {"placement": "first-free", "admission": "load-limit:1.2"}]
    return [{}, {"placement": "consolidated"}]
