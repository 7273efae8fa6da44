"""The policy that chooses its policy: whom it puts in charge, when, and that it is a policy like any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.jobs import by_job, job_row

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.memory import plain
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_plan, decode_snapshot, encode_plan
from gantline.engine.drivers.journal import Journal
from gantline.lab.questions.explain import explain
from gantline.lab.questions.forecast import Setup
from gantline.lab.report.figures import gantt
from gantline.lab.report.html import render_report
from gantline.lab.report.run_warnings import policies_in_charge
from gantline.lab.report.rundir import read_run, write_run
from gantline.policies.registry import make_policy
from gantline.simulator.objective import Objective
from gantline.simulator.rollout import rollout
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace


def synthesizer(**settings: Any) -> Any:
    return make_policy("synthesizer", settings)


def trace(seed: int = 0, count: int = 40, gap: float = 120.0, long: float = 6000.0) -> Trace:
    random = np.random.default_rng(seed)
    rows = [job_row(f"j{k}", int(random.choice([1, 2, 4])), float(random.integers(60, int(long))), at=gap * k) for k in range(count)]
    return Trace.from_records(rows)


def decided(told: dict[str, Any], **settings: Any) -> Any:
    """The plan for the queue below, of which other things are told."""
    return synthesizer(**settings).decide(decode_snapshot(QUEUE | told))


QUEUE: dict[str, Any] = {
    "now": 600,
    "cluster": "1x4",
    "jobs": [
        {"id": "runs", "gpus": 4, "estimate": 500, "devices": [0, 1, 2, 3]},
        {"id": "long", "gpus": 4, "estimate": 9000, "arrival": 1},
        *({"id": f"short{k}", "gpus": 1, "estimate": 100, "arrival": 2 + k} for k in range(8)),
    ],
}


@pytest.mark.parametrize("member", ["srtf", "las", "fifo", "tiresias", "afs"])
@pytest.mark.parametrize("options", [{}, {"round": 60.0}], ids=["events", "rounds"])
def test_a_portfolio_of_one_is_that_policy(member: str, options: dict[str, Any]) -> None:
    jobs = trace(count=20)
    alone = simulate(jobs, "2x4", member, **options)
    wrapped = simulate(jobs, "2x4", synthesizer(portfolio=(member,)), **options)
    assert wrapped.summary["log_hash"] == alone.summary["log_hash"]


def test_the_best_future_is_in_charge_and_says_why() -> None:
    snapshot = decode_snapshot(QUEUE)
    plan = synthesizer(portfolio="fifo,srtf").decide(snapshot)
    assert plan.memory["chosen"] == "srtf"
    futures = rollout(snapshot, ["fifo", "srtf"])
    assert futures.jct("srtf") < futures.jct("fifo")
    assert str(plan.in_charge).startswith("srtf is in charge: mean-jct")
    assert plan.notes == ()
    lines = explain(snapshot, synthesizer(portfolio="fifo,srtf"), "long", Setup(samples=1)).lines()
    assert str(plan.in_charge) in lines


def test_a_run_says_which_policy_was_in_charge_when_and_why(tmp_path: Any) -> None:
    """In its summary, its record, its report and its picture; replayed, stored and read again."""
    policy = synthesizer(every=1, portfolio="fifo,srtf")
    run = simulate(trace(gap=90.0, count=8), "1x4", policy, round=180.0, record=True)
    told = run.summary["in_charge"]
    assert [name for _, name, _ in told][:2] == ["fifo", "srtf"]
    assert "instead of" in told[1][2]
    assert "under fifo" in told[1][2]
    decisions = [line for line in run.journal.lines if "decision" in line]
    assert {line["in_charge"] for line in decisions} == {name for _, name, _ in told}
    assert [line["why"] for line in decisions if "why" in line] == [why for _, _, why in told]
    plan = policy.decide(decode_snapshot(QUEUE))
    assert decode_plan(encode_plan(plan)).in_charge == plan.in_charge
    read = read_run(write_run(run, tmp_path / "run"))
    assert policies_in_charge(read) == policies_in_charge(run)
    assert policies_in_charge(read) in render_report([read])
    strip, devices = gantt(read).panels
    assert [name for name, _ in strip.layers[0].legend] == list(dict.fromkeys(name for _, name, _ in told))
    shade = dict(strip.layers[0].legend)["fifo"]
    assert tuple(strip.layers[0].pixels[0, 0][:3]) == shade
    assert devices.x == strip.x


def test_a_challenger_must_be_better_by_the_margin() -> None:
    told = {"memory": decided({}, portfolio="fifo").memory}
    for settings, chosen in (
        ({"margin": 0.02}, "srtf"),
        ({"margin": 0.95}, "fifo"),
        ({"switch_cost": 1e6}, "fifo"),
        ({"draws": 20, "most": 0.9}, "srtf"),
    ):
        assert decided(told, portfolio="fifo,srtf", **settings).memory["chosen"] == chosen, settings


def test_choices_are_made_every_so_many_rounds_or_when_the_load_has_changed() -> None:
    memory = decided({"round": 60}, portfolio="fifo").memory
    for later, settings, chosen in ((540, {}, "fifo"), (600, {}, "srtf"), (60, {"load_change": 0.5}, "srtf")):
        then = {**memory, "asked_at": 600.0, "load": 16.0 if not settings else 4.0}
        plan = decided({"round": 60, "now": 600 + later, "memory": then}, portfolio="fifo,srtf", **settings)
        assert plan.memory["chosen"] == chosen, later


def test_an_admission_limit_that_is_chosen_holds_jobs_back_as_the_run_would() -> None:
    behind = simulate(trace(gap=60.0), "2x4", "las", round=60.0, admission="load-limit:1.2")
    chosen = simulate(trace(gap=60.0), "2x4", synthesizer(portfolio="las", admissions="load-limit:1.2"), round=60.0)
    assert chosen.summary["log_hash"] == behind.summary["log_hash"]


def test_a_placement_rule_that_is_chosen_places_gangs_as_the_run_would() -> None:
    """By itself it is that of the run, to the hash; of several, the one whose futures are better."""
    usual = simulate(trace(gap=60.0), "2x4", "srtf", round=60.0, placement="consolidated")
    chosen = simulate(trace(gap=60.0), "2x4", synthesizer(portfolio="srtf", placements="consolidated"), round=60.0)
    assert chosen.summary["log_hash"] == usual.summary["log_hash"]
    crowded = [{"id": f"runs{k}", "gpus": 2, "estimate": 9000, "devices": [4 * k, 4 * k + 1]} for k in range(2)]
    waits = [{"id": f"wide{k}", "gpus": 4, "estimate": 600, "arrival": 1 + k} for k in range(2)]
    snapshot = decode_snapshot({"now": 600, "cluster": "2x4", "jobs": [*crowded, *waits]})
    plan = synthesizer(portfolio="fifo,srtf", placements="consolidated,first-free").decide(snapshot)
    assert plan.in_charge is not None
    assert plan.in_charge.policy == "fifo@first-free"  # no node has four free devices
    assert plan.ranking is not None
    assert plan.ranking.placement == "first-free"


def test_memories_of_policies_that_rest_are_kept() -> None:
    memory = plain(decided({"round": 60}, portfolio="gavel.max_min_fairness_perf").memory)
    assert memory["members"]["gavel.max_min_fairness_perf"]
    later = {"round": 60, "memory": {**memory, "chosen": "srtf", "asked_at": 600.0}}
    again = decided(later, portfolio="srtf,gavel.max_min_fairness_perf")
    assert again.memory["chosen"] == "srtf"
    assert plain(again.memory)["members"] == memory["members"]


def test_a_policy_that_fails_in_its_futures_is_left_out_and_reported(tmp_path: Any) -> None:
    (tmp_path / "bad.py").write_text(
        "import gantline\n\n\nclass Bad(gantline.OrderPolicy):\n    def key(self, snapshot):\n        raise ValueError('no')\n"
    )
    portfolio = (f"{tmp_path}/bad.py:Bad", "srtf")
    plan = decided({}, portfolio=portfolio)
    assert plan.memory["chosen"] == "srtf"
    (said,) = plan.notes
    assert "left out of choices" in said
    assert "no" in said
    again = {"now": 99_999, "decision": 2, "memory": plan.memory}
    assert decided(again, portfolio=portfolio, every=1).notes == ()  # said once


def test_what_a_portfolio_cannot_hold_is_refused(tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text(
        "from gantline.systems.blox.synthesizer import Synthesizer\n\n\nclass Mine(Synthesizer):\n    name = 'mine'\n"
    )
    for member in ("synthesizer", "auto", f"{tmp_path}/mine.py:Mine"):
        with pytest.raises(UsageError, match="holds the synthesizer itself"):
            synthesizer(portfolio=("fifo", member))
    for part, names, told in (
        ("portfolio", "fifo,srft", "no policy 'srft'"),
        ("placements", "together", "no placement 'together'"),
        ("admissions", "load-limits:1.2", "no admission rule 'load-limits"),
    ):
        with pytest.raises(NotFoundError, match=told):
            synthesizer(**{part: names})


def test_an_objective_that_the_run_cannot_answer_is_refused_before_it_begins() -> None:
    for objective, told in (("deadlines", "some-deadline"), ("dollars", "prices"), ("kwh", "power"), ("0.5*kwh+0.5*mean-jct", "power")):
        with pytest.raises(RefusedError, match=f"needs {told}, which this run does not provide"):
            simulate(trace(count=3), "2x4", synthesizer(objective=objective))
    due = Trace.from_records([job_row("a", 1, 60, deadline=100)])
    assert simulate(due, "2x4", synthesizer(objective="deadlines")).summary["completed"] == 1


def test_dollars_and_kilowatt_hours_are_those_that_the_run_then_pays() -> None:
    """Restarts cost time that is paid for, so orders differ even on devices of one kind; the engine's futures know by how much."""
    rows = [job_row(f"j{k}", 1 + k % 3, 900.0 - 100.0 * k) for k in range(8)]
    options: dict[str, Any] = {"costs": "resume=300", "prices": "gpu=2.0", "power": "gpu=300/60", "round": 60.0}
    spent: dict[str, tuple[float, float]] = {}

    class Seen(Journal):
        def decided(self, snapshot: Snapshot, plan: Any) -> None:
            if not spent:
                for one in rollout(snapshot, ["fifo", "las"], spending=True):
                    spent[one.policy] = float(one.dollars[0]), float(one.kwh[0])

    for name in ("fifo", "las"):
        spent.clear()
        told = simulate(rows, "1x4", name, record=Seen(), **options).summary
        assert spent[name] == pytest.approx((told["cost"], told["kwh"]))
    assert spent["fifo"][0] < spent["las"][0]
    for objective in ("dollars", "kwh", "0.5*dollars+0.5*kwh"):
        run = simulate(rows, "1x4", synthesizer(portfolio="las,fifo", objective=objective), **options)
        assert [name for _, name, _ in run.summary["in_charge"]] == ["fifo"]


def test_after_a_lost_turn_no_choice_is_made_before_the_next_is_due() -> None:
    """Futures that took too long would take too long again: what is in charge decides at once, and goes on deciding."""
    memory = decided({"round": 60}, portfolio="fifo").memory
    both: dict[str, Any] = {"portfolio": "fifo,srtf", "every": 5}
    late = decided({"round": 60, "now": 1200, "decision": 3, "memory": {**memory, "decided": 1}}, **both)
    assert late.in_charge is not None
    assert late.in_charge.policy == "fifo"
    assert "a decision was lost" in late.notes[0]
    soon, due = (decided({"round": 60, "now": now, "decision": 4, "memory": late.memory}, **both) for now in (1260, 1500))
    assert (soon.in_charge.policy, due.in_charge.policy) == ("fifo", "srtf")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"portfolio": ""}, "portfolio is empty"),
        ({"portfolio": "fifo,fifo"}, "stands twice"),
        ({"portfolio": "las(service)"}, "no setting"),
        ({"portfolio": "afs", "admissions": "load-limit:1.2"}, "none can be kept from it"),
        ({"admissions": "quota:user=3"}, "is a quota"),
        ({"portfolio": "afs,srtf", "placements": "consolidated"}, "would change nothing"),
        ({"objective": "happiness"}, "no objective 'happiness'"),
        ({"objective": "deadlines", "switch_cost": 1.0}, "no change can gain more than 1:"),
        ({"objective": "0.7*mean-jct+0.3*worst-rho", "switch_cost": 1.5}, "no change can gain more than 1:"),
        ({"margin": "1.0"}, "its whole value"),
        ({"every": "-1"}, "every is -1"),
        ({"newcomers": "some"}, "newcomers is 'some'"),
        ({"compat": "blox", "portfolio": "fifo"}, "compat=blox says"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        synthesizer(**settings)


def test_where_load_turns_from_light_to_heavy_it_beats_every_policy_that_it_chooses_from() -> None:
    """An objective that trades: LAS starts jobs first, SRTF ends them first, and which of the two is worth more changes with the queue."""
    random, rows, now = np.random.default_rng(1), [], 0.0
    while now < 43_200.0:
        now += float(random.exponential(6_000.0 / (8 * (1.4 if now // 21_600.0 % 2 else 0.8))))
        work = 60.0 * 10.0 ** (random.uniform(1.0, 2.2) if random.random() < 0.8 else random.uniform(2.2, 2.8))
        rows.append(job_row(f"j{len(rows)}", 1, work, at=now))
    objective, names = Objective.parse("0.5*mean-jct+0.5*responsiveness"), ("fifo", "las", "srtf")
    ours = synthesizer(portfolio=names, objective=str(objective), every=1, margin=0.0)
    told = [simulate(rows, "2x4", each, round=300.0).summary for each in (*names, ours)]
    values = [{"mean-jct": one["average_jct"], "responsiveness": one["average_responsiveness"]} for one in told]
    *fixed, score = (objective.score(each, values[0]) for each in values)
    assert score < 0.98 * min(fixed), (score, fixed)


@pytest.mark.parametrize(
    "settings", [{}, {"admissions": "accept-all,load-limit:1.2", "draws": 3, "newcomers": "past"}], ids=["usual", "all"]
)
def test_both_clocks_and_a_replay_give_the_same_run(settings: dict[str, Any]) -> None:
    policy = synthesizer(every=4, margin=0.0, **settings)
    jobs = trace(count=8, gap=60.0, long=2000.0)
    virtual = simulate(jobs, "1x4", policy, round=60.0, record=True)
    acknowledged = simulate(jobs, "1x4", policy, round=60.0, record=True, executor="acknowledged")
    assert acknowledged.summary["log_hash"] == virtual.summary["log_hash"]
    assert acknowledged.summary["in_charge"] == virtual.summary["in_charge"]
    assert len(virtual.summary["in_charge"]) > 1
    again = [line["hash"] for line in simulate(jobs, "1x4", policy, round=60.0, record=True).journal.lines if "hash" in line]
    assert again == [line["hash"] for line in virtual.journal.lines if "hash" in line]


def test_a_rollout_of_the_synthesizer_is_the_run_that_then_happens_job_by_job() -> None:
    """No draws, no newcomers, the same memory: what it foresees of itself, futures within futures, is what it does."""
    seen: list[Any] = []

    class Halfway(Journal):
        def decided(self, snapshot: Snapshot, plan: Any) -> None:
            if snapshot.decision == 12:
                assert snapshot.memory["chosen"]
                seen.append((snapshot.jobs.ids, rollout(snapshot, policy)[0].finish[0]))

    policy = synthesizer(every=3, portfolio="fifo,srtf,las", margin=0.0)
    run = simulate(trace(count=8, gap=5.0), "1x4", policy, round=60.0, record=Halfway())
    ((ids, finish),) = seen
    assert dict(zip(ids, finish.tolist())) == pytest.approx({job: by_job(run, "finish")[job] for job in ids})
    assert len(run.summary["in_charge"]) > 1
