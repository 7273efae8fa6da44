"""One matrix for every policy that is registered: the rules for policies, taking over a live scheduler, and what a question, a queue's
limit, a resize or a placement asks of whichever policy decides. Both clocks are compared here by the rules, and in `tests/records`.

At every change each policy takes over and goes through one of the checks, and the first of each family through one scenario of the rules;
`make test-long` takes every policy through all of them. A policy that is registered is here by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.engine.held import held, most_held
from tests.live.specs import must_succeed, running, shell, submit
from tests.systems.gavel.tiny_world import table, trace

from gantline.core.facts import Facts, PowerGrid, Signal
from gantline.core.inputs import Action, JobRequest, Submit
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.conformance import check_policy, suite
from gantline.lab.conformance.scenarios import CARBON, scenarios, some_jobs
from gantline.lab.questions import explain
from gantline.lab.questions.forecast import Setup
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore
from gantline.models.sharing.throughput_model import ThroughputModel
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.models.uncertainty import Uncertainty
from gantline.policies.registry import make_policy, policy_names
from gantline.simulator.simulate import simulate

POLICIES = [name for name in policy_names() if name != "recorded"]  # that one decides in an imitation only
NOT_LIVE = ("gaia", "carbonscaler")  # need the carbon intensity of the grid, which a live service does not read
BRIEF: dict[str, dict[str, Any]] = {  # a search as long as theirs is not the subject
    **{name: {"size": 4, "generations": 2} for name in ("pollux", "adaptdl")},
    "shockwave": {"window": 4},
}
#: with its defaults, and with the settings that change its path
ROWS: list[tuple[str, dict[str, Any]]] = [
    *((name, BRIEF.get(name, {})) for name in POLICIES),
    ("fifo", {"backfill": "skip"}),
    ("fifo", {"backfill": "easy"}),
    ("fifo", {"backfill": "conservative"}),
    ("las", {"service": "gpu-time"}),
    ("tiresias", {"limits": (100.0, 1000.0)}),
    ("tiresias", {"promote": 2.0}),
    ("tiresias", {"gittins": True}),
]
PACKED = tuple(name for name in POLICIES if "pairs" in make_policy(name).needs)
GAVEL = tuple(name for name in POLICIES if name.startswith("gavel.") and name not in PACKED)
FAMILIES = (  # relatives decide by the same code but for one function; the first is told all scenarios of the long run, the others share
    # them. At every change the first stands for its family here, and the other checks and the records take each of them
    ("srtf", "sjf", "srsf", "smallest"),
    ("drf", "drf-ext", "drf-fifo", "drf-sjf", "es", "fs"),
    ("allox.srpt", "allox.sjf"),
    ("voda.elastic_tiresias", "voda.elastic_srjf", "voda.elastic_fifo", "voda.tiresias", "voda.srjf", "voda.fifo"),
    ("afs", "equal-share"),
    ("pollux", "adaptdl"),
    tuple(sorted(GAVEL, key=lambda name: name != "gavel.finish_time_fairness_perf")),
    tuple(sorted(PACKED, key=lambda name: name != "gavel.max_min_fairness_packed")),
)
SHARES = 11  # one scenario each: at every change the first of each family goes through one; `--long` tells them all
FAULTY = 10  # scenarios of a faulty world; each policy lives through one, at every change a tenth of the policies through others each
EVEN = Signal((100.0,), step=200.0)  # a grid on which waiting saves nothing
JOBS = trace(("big", 400.0, 0.0), ("small", 300.0, 0.0), ("big", 200.0, 10.0), ("small", 90.0, 40.0), ("big", 60.0, 200.0))
PRESENT = {
    "now": 600,
    "cluster": "2x4",
    "jobs": [
        {"id": "big", "gpus": 4, "estimate": 4000, "service": 500, "devices": [0, 1, 2, 3]},
        {"id": "small", "gpus": 2, "estimate": 300, "arrival": 100, "devices": [4, 5]},
        {"id": "new", "gpus": 4, "estimate": 700, "arrival": 590},
    ],
}


@cache
def speeds_of_pairs() -> ThroughputModel:
    """Any two jobs of the scenarios together do eight tenths each."""
    told = [job for scenario in scenarios() for job in scenario.jobs]
    told += [job for seed in range(FAULTY) for job in some_jobs(f"faults {seed}")]
    jobs = {job["job"]: job["gpus"] for job in told} | {f"equal-{k}": 2 for k in range(9)}
    rows = {f"('any', {n})": {"null": 1.0, f"('any', {n})": [0.8, 0.8]} for n in sorted(set(jobs.values()))}
    ones, names = np.ones(len(jobs)), [("any", gpus) for gpus in jobs.values()]
    return ThroughputModel.of(ThroughputTable.of({"any": rows}), ("any", "any"), list(jobs), names, ones, ones)


def rows() -> Iterator[Any]:
    relatives = {name for family in FAMILIES for name in family[1:]}
    for name, settings in ROWS:
        marks = [pytest.mark.long] * (name in relatives)
        yield pytest.param(name, settings, id=" ".join([name, *map(str, settings.values())]), marks=marks)


@pytest.mark.parametrize(("name", "settings"), [*rows()])
def test_it_keeps_every_rule(name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    number = ROWS.index((name, settings))
    place = next((family.index(name) for family in FAMILIES if name in family), 0)
    share = scenarios()[(place or number) % SHARES :: SHARES]
    monkeypatch.setattr(suite, "scenarios", lambda: share)
    turn, rest = divmod(number, FAULTY)
    monkeypatch.setattr(suite, "_FAULTY_SCENARIOS", (turn,) if rest == 0 else ())
    report = check_policy(name, settings, performance=speeds_of_pairs() if name in PACKED else None)
    assert report.passed, f"\n{report}"


def test_relatives_are_there_and_have_settings_that_change_nothing() -> None:
    told = [name for name, _ in ROWS]
    assert all(told.count(name) == 1 for family in FAMILIES for name in family)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """With a job on one of its devices, which every policy that takes over finds there and which outlasts them all."""
    with running(tmp_path_factory.mktemp("home"), "cpu:3", store=MemoryStore()) as found:
        found.submit(shell("exec sleep 1000", estimate=1000.0))
        yield found


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in NOT_LIVE])
def test_it_takes_over_and_serves_the_queue(scheduler: Scheduler, policy: str) -> None:
    """One scheduler, two clocks: each drives real processes."""
    scheduler.use(policy, BRIEF.get(policy, {}))
    lost = scheduler.view().counters["lost_turns"]
    job = submit(scheduler, "true", gpus=2, estimate=60.0)
    must_succeed(scheduler, job)
    assert scheduler.view().counters["lost_turns"] == lost, scheduler.view().incidents[-1]


def test_a_policy_that_is_not_there_changes_nothing(scheduler: Scheduler) -> None:
    before = scheduler.view().policy
    with pytest.raises(Exception, match="no policy"):
        scheduler.use("sfrt")
    assert scheduler.view().policy == before


def explained(policy: str) -> None:
    """The answer is one of the acts, and its forecast does not lie before now."""
    present = replace(decode_snapshot(PRESENT), facts=Facts(grid=PowerGrid(carbon=CARBON)))
    sure = Setup(uncertainty=Uncertainty(sigma=0.0), samples=1)
    found = explain(present, make_policy(policy, BRIEF.get(policy, {})), "new", sure)
    assert found.act in ("starts", "stays", "moves", "resizes", "is stopped", "waits")
    assert found.lines()
    assert found.expected is None or (not found.expected.start_p50 < 600 and not math.isnan(found.expected.finish_p50))


def within_quotas(policy: str) -> None:
    """No queue holds more than it may have, and every job starts."""
    typed = policy.startswith("gavel") or policy in ("sia", "heet", "allox", "shockwave")
    bounds = {} if typed else {"min_gpus": 1, "max_gpus": 2}
    jobs = [{**row, "queue": ("a", "b/x", "b/y")[k % 3], **bounds} for k, row in enumerate(JOBS.frame.to_dicts())]
    more = {"throughputs": table()} if typed else {}
    run = simulate(jobs, "v100:2,k80:2" if typed else "1x4", policy, round=30.0, queues="a=1:0,b=1:1,b/x=1:0", carbon=CARBON, **more)
    limits = {"a": 1, "b": 2, "b/x": 1}
    most = most_held(run, limits)
    assert all(most[queue] <= limit for queue, limit in limits.items())
    assert not run.jobs["first_start"].is_nan().any(), run.incidents[:1]


def resized(policy: str) -> None:
    """A job that asks for another size while it runs holds that size, or waits for it."""
    if policy.startswith("gavel"):
        request = JobRequest(100.0, Action.RESIZE, "0", 2)
        run = simulate(trace(("big", 40000.0, 0.0)), "v100:2,k80:2", policy, throughputs=table(), inputs=[request], until=900, round=60.0)
        assert held(run, "0", 600.0) in (0, 2)
        return
    first = {"job": "a", "arrival": 0.0, "gpus": 3, "min_gpus": 3, "max_gpus": 3, "duration": 1000.0}
    request = JobRequest(100.0, Action.RESIZE, "a", 2)
    run = simulate([first], "1x4", policy, inputs=[request], until=450, round=60.0, carbon=EVEN)
    assert held(run, "a", 60.0) == 3
    assert held(run, "a", 440.0) == 2


def placed(policy: str) -> None:
    """A policy that names devices gives the same whatever the placement, and the run says that the rule decides nothing; no other does."""
    plain, ruled = (
        simulate(JOBS, "v100:2,k80:2", make_policy(policy), placement=rule, throughputs=table(), round=30.0, carbon=CARBON)
        for rule in (None, "consolidated:preferred")
    )
    said = any("decides nothing" in notice for notice in ruled.notices)
    assert said == make_policy(policy).names_devices
    assert not any("decides nothing" in notice for notice in plain.notices)
    assert not said or ruled.summary["log_hash"] == plain.summary["log_hash"]


def on_one_node(policy: str) -> None:
    """A job that must be on one node never spans two, whatever sizes the policy gives it, and is served."""
    if policy in PACKED:
        return  # speeds of pairs come from a table, which lists no jobs that are submitted later
    first = {"job": "a", "arrival": 0.0, "gpus": 2, "duration": 900.0}
    asked = {"gpus": 2, "min_gpus": 1, "max_gpus": 3, "consolidate": 1}
    jobs = [Submit(float(k), {"id": f"s{k}", **asked, "estimate": 600.0 + 40.0 * k}, 600.0 + 40.0 * k) for k in range(1, 6)]
    run = simulate([first], "3x3", policy, settings=BRIEF.get(policy, {}), inputs=jobs, round=60.0, until=20_000, carbon=CARBON)
    mine = run.allocations.filter(run.allocations["job"].str.starts_with("s"))
    assert set(mine["job"]) == {f"s{k}" for k in range(1, 6)}
    assert mine["nodes"].list.len().max() == 1


@pytest.mark.parametrize("check", [explained, within_quotas, resized, placed, on_one_node])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy(policy: str, check: Callable[[str], None]) -> None:
    check(policy)
