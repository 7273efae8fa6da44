"""An imitation reads a parameter or an option, or refuses it: nothing is accepted, shown in the summary and ignored."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from tests.records.runs import recorded_runs
from tests.records.worlds import make_worlds

from gantline.core.errors import GantlineError, RefusedError
from gantline.core.inputs import NodeEvent
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.assembly.spec import OPTIONS
from gantline.engine.imitations import registry
from gantline.engine.imitations.registry import ALWAYS, Scope
from gantline.policies.registry import find_policy, make_policy, policy_names
from gantline.simulator.run import Run
from gantline.systems.gavel.policies.policy import GavelPolicy
from gantline.systems.pollux.policies import Pollux

WORLDS = registry.imitated_regimes()
HOMES = {(run.regime, run.policy): run.world for run in recorded_runs()}
#: words of parameters; numbers and flags are changed as their type allows
OTHER: dict[str, Any] = {
    "compat": {"edf": "elasticflow", "elasticflow": "elasticflow", "shockwave": "shockwave", "tiresias": "blox"},
    "fit": {"pollux": "artifact"},
    "overhead": "none", "admission": "single", "spare_order": "artifact", "judge": "slot", "scale_limit": "table", "layout": "packed",
    "misfit": "stop", "weights": ("ann=2",), "limits": (60.0,), "sample": (1.0,), "tie": "efficient", "alpha": 0.25,
    "entities": "production=2:fairness,research=1", "owner": "queue", "prices": "v100=2,k80=1", "placement": "fast", "move_cost": "5",
    "futures": "told", "seats": "spread", "stragglers": "keep", "payment": "floor", "of_app": "best", "profiling": 0.5, "table": "x.csv",
    "interference": 0.5, "f": 0.5, "size": 8, "generations": 3, "window": 6, "beat": 4,
    "reserved": {"gaia": 2, "sia": "a"}, "service": {"las": "gpu-time", "tiresias": "time"}, "backfill": "skip",
    "scheduling": "carbon-cost", "carbon": "oracle", "waiting": "1x2", "start": 3,
    "order": "las", "mechanism": "greedy", "place": "consolidated", "mode": "static",
    "most_score": 1, "repair": ("guest",), "ordering": "worst", "most": 2, "quotas": "ann=1", "busy": 0.5, "step": 0.5,
}  # fmt: skip
OPTION_VALUES: dict[str, Any] = {
    "placement": "consolidated",
    "admission": "load-limit:1",
    "round": 100.0,
    "estimates": "noisy:0.3",
    "costs": "30",
    "end_by": "target:0.5",
    "min_run": 60.0,
    "grace": 60.0,
    "turn": 60.0,
    "latency": 5.0,
    "executor": "acknowledged",
    "seed": 3,
    "track": (0, 1),
    "until": 500.0,
    "node_events": (NodeEvent(5.0, "node0", "down"),),
    "scaling": "learned",
    "across_nodes": True,
    "prices": "v100=1",
    "budget": 5.0,
    "checkpoint": "run.npz",
    "checkpoint_every": 60.0,
    "resume": "run.npz",
    "locality": 1.5,
    "queues": "a=1",
    "reserve": "nodes=1,from=5,for=9",
    "victims": "least-lost",
}
FILES = {
    "throughputs": "nowhere.json", "profiles": "nowhere", "carbon": "nowhere.csv", "electricity": "nowhere.csv", "power": "nowhere.csv",
    "series_start": "3", "device_speeds": "nowhere.csv", "performance": "nowhere.py:Model",
}  # fmt: skip


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., Run]]:
    """The worlds of the records with a few of their jobs, each regime under its name."""
    made = make_worlds(tmp_path_factory.mktemp("worlds"), most=12)

    def run(regime: str, policy: Any, settings: dict[str, Any], **more: Any) -> Run:
        return made[HOMES.get((regime, policy), regime)](policy, settings, **more)

    return {regime: partial(run, regime) for regime in WORLDS}


def scope_of(regime: str) -> Scope:
    found = registry.find_scope(regime)
    assert found is not None
    return found


def policies_of(regime: str) -> list[str]:
    return [name for name in policy_names() if name.startswith("gavel.")] if regime == "gavel" else list(scope_of(regime).policies)


def other_value(policy: str, item: Field[Any]) -> Any:
    """A value of this parameter that is valid and not the default."""
    if item.name in OTHER:
        value = OTHER[item.name]
        return value.get(policy, "gavel" if policy.startswith("gavel.") else "compiled") if isinstance(value, dict) else value
    default = item.default if item.default is not MISSING else item.default_factory()  # type: ignore[misc]
    if isinstance(default, bool):
        return not default
    return 2 * default + 3 if math.isfinite(default) and default >= 0 else 77.0


@pytest.mark.parametrize("regime", WORLDS)
def test_every_parameter_of_every_policy_is_read_or_refused(
    regime: str, worlds: dict[str, Callable[..., Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    drive, seen, watching = registry.find_imitation(regime), set(), [False]
    assert drive is not None

    def watched(*given: Any) -> Any:
        watching[0] = True
        try:
            return drive(*given)
        finally:
            watching[0] = False

    monkeypatch.setattr(import_module(drive.__module__), drive.__name__, watched)
    for name in policies_of(regime):
        kind, settings = find_policy(name), {item.name: other_value(name, item) for item in fields(find_policy(name))}
        read = scope_of(regime).reads(make_policy(name, {}))
        for one in [one for one in settings if one not in read]:
            with pytest.raises(GantlineError, match=f"does not read '{one}'|profile: short runs"):  # which no SRPT has
                scope_of(regime).check(regime, make_policy(name, {one: settings[one]}), {})

        def note(self: Any, attribute: str) -> Any:
            if watching[0]:
                seen.add(attribute)
            return object.__getattribute__(self, attribute)

        seen.clear()
        with monkeypatch.context() as patch:
            patch.setattr(kind, "__getattribute__", note, raising=False)
            # what hides another parameter, or cannot be had in so small a world, stays as it is
            hidden = {"table", "ideal", "parts", "compat", "p", "admission", "overhead"}
            run = worlds[regime](name, {one: settings[one] for one in read if one not in hidden})
        assert run.summary["policy"] == name
        assert set(read) <= seen, f"{name} in {regime}: {set(read) - seen} declared, but not read"


@pytest.mark.parametrize("regime", WORLDS)
def test_every_option_of_a_run_is_read_or_refused(regime: str) -> None:
    scope, policy = scope_of(regime), make_policy(policies_of(regime)[-1], {})
    read = scope.options | ALWAYS
    scope.check(regime, policy, {name: OPTIONS[name].flag for name in read & OPTIONS.keys()})
    for name in OPTIONS.keys() - read:
        with pytest.raises(RefusedError, match=rf"nothing like {OPTIONS[name].flag} \("):
            scope.check(regime, policy, {name: OPTIONS[name].flag})


@pytest.mark.parametrize("regime", WORLDS)
@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - ALWAYS))
def test_a_run_is_refused_with_an_option_that_its_regime_does_not_read(
    regime: str, name: str, worlds: dict[str, Callable[..., Run]]
) -> None:
    if name in scope_of(regime).options:
        regime = next(other for other in WORLDS if name not in scope_of(other).options)
    with pytest.raises(GantlineError) as caught:
        worlds[regime](policies_of(regime)[-1], {}, **{name: (FILES | OPTION_VALUES)[name]})
    if name not in FILES:  # these are looked for before
        assert f"nothing like {OPTIONS[name].flag}" in str(caught.value)


@pytest.mark.parametrize(
    ("regime", "policy", "parameter"),
    [("irfsim", "allox", one) for one in ("preemptive", "age", "patience", "fill", "profile", "weights")]
    + [("sia", "gavel.max_sum_throughput_perf", one) for one in ("spacing", "ideal", "compat")],
)
def test_what_was_once_shown_and_ignored_is_refused(
    regime: str, policy: str, parameter: str, worlds: dict[str, Callable[..., Run]]
) -> None:
    item = next(item for item in fields(find_policy(policy)) if item.name == parameter)
    with pytest.raises(RefusedError, match=f"does not read '{parameter}'.*\n*.*leave {parameter} out"):
        worlds[regime](policy, {parameter: other_value(policy, item)})


@pytest.mark.parametrize(("regime", "policy", "setting"), [
    ("irfsim-known", "allox", {"alpha": 0.1}), ("irfsim-known", "drf", {"weights": ("user1=9",)}),
    ("pollux", "tiresias", {"limits": (60.0,)}),    ("elasticflow", "elasticflow", {"overhead": "none"}),
    ("gavel", "gavel.max_min_fairness", {"ideal": True}),
])  # fmt: skip
def test_what_is_read_changes_the_run(regime: str, policy: str, setting: dict[str, Any], worlds: dict[str, Callable[..., Run]]) -> None:
    usual, other = (worlds[regime](policy, given) for given in ({}, setting))
    assert usual.jobs["finish"].to_list() != other.jobs["finish"].to_list()


@pytest.mark.parametrize("regime", WORLDS)
def test_a_policy_that_the_original_does_not_have_is_refused_alike_everywhere(regime: str) -> None:
    with pytest.raises(RefusedError, match="policy 'quincy'") as told:
        scope_of(regime).check(regime, MyQuincy(), {})
    assert (told.value.where, told.value.exit_code) == (f"--regime {regime}", 4)


@dataclass(frozen=True)
class MyQuincy(Policy):
    """A policy of one's own that no original has."""

    name = "quincy"

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([])


@dataclass(frozen=True)
class MyPollux(Pollux):
    """A policy of one's own, derived from Pollux."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([])


@dataclass(frozen=True)
class MyShares(find_policy("gavel.isolated")):  # type: ignore[misc]
    """Shares of one's own: Gavel's simulator asks for them."""


@dataclass(frozen=True)
class MyTurns(MyShares):
    """A decision of one's own, which it does not."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([])


@pytest.mark.parametrize("regime", ["sia", "pollux"])
def test_a_class_derived_from_a_policy_is_refused_and_not_replaced_by_it(regime: str, worlds: dict[str, Callable[..., Run]]) -> None:
    with pytest.raises(RefusedError, match="class 'MyPollux' would not be called"):
        worlds[regime](MyPollux(), {})


def test_gavels_simulator_asks_for_shares_and_not_for_decisions(worlds: dict[str, Callable[..., Run]]) -> None:
    assert issubclass(MyShares, GavelPolicy)
    assert worlds["gavel"](MyShares(), {}).summary["completed"] == 12
    with pytest.raises(RefusedError, match=r"decide\(\) of class 'MyTurns' would not be called"):
        worlds["gavel"](MyTurns(), {})


@pytest.mark.parametrize("settings", [{"ideal": True, "spacing": 60.0}, {"ideal": True, "round": 60.0}])
def test_ideal_shares_have_neither_spacing_nor_rounds(settings: dict[str, Any], worlds: dict[str, Callable[..., Run]]) -> None:
    length = settings.pop("round", None)
    with pytest.raises(RefusedError, match=r"spacing|rounds of ideal shares"):
        worlds["gavel"]("gavel.max_min_fairness", settings, **({} if length is None else {"round": length}))


@pytest.mark.parametrize(("policy", "overhead"), [("elasticflow", "35"), ("edf", "artifact")])
def test_seconds_that_elasticflows_simulator_would_not_charge_are_refused(
    policy: str, overhead: str, worlds: dict[str, Callable[..., Run]]
) -> None:
    with pytest.raises(RefusedError, match=r"seconds of its own|charges nothing"):
        worlds["elasticflow"](policy, {"overhead": overhead})


@pytest.mark.parametrize(("regime", "policy"), [("elasticflow", "tiresias"), ("gavel", "gavel.fifo")])
def test_cpus_that_would_not_be_counted_are_refused(regime: str, policy: str) -> None:
    from gantline.simulator.simulate import simulate

    jobs = [{"job": str(k), "arrival": 0.0, "gpus": 1, "duration": 100.0, "cpus": 8} for k in range(2)]
    with pytest.raises(RefusedError, match="jobs ask for cpus"):
        simulate(jobs, "gpu:1x2/8c", policy, regime=regime, round=60.0)
    assert simulate(jobs, "gpu:1x2", policy, regime=regime, round=60.0).summary["completed"] == 2
    assert isinstance(make_policy(policy, {}), Policy)
