"""Plans of all forms mixed, while nodes come and go: a commit does what the plainest code does, and keeps what shall be kept.

`pytest tests/engine/test_mixed_plans.py --plans 20000` takes more of them.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tests.engine.states import columns_of, engine_of
from tests.oracles.books import check_books
from tests.oracles.one_by_one import OneByOne
from tests.oracles.plain_difference import kept_assignments

from gantline.core.columns import Job
from gantline.core.facts import Costs
from gantline.core.inputs import NodeEvent
from gantline.core.plan import TRIAL, Assignment, Mode, Part, Plan
from gantline.engine.commit import commit as commit_module
from gantline.engine.engine import Engine
from gantline.engine.log import Interval

JOBS, DEVICES, PLANS_OF_A_WORLD = 8, 9, 8
RARE = ("within", "nodes", "share", "parts", "trial")
USUAL = ("option", "option", "sized", "named", "named", "open", "pair", "pair", "stage", "link", "turns", "batch", "cpus", "limit")


def twins(draw: random.Random) -> tuple[Engine, Engine]:
    sizes = [draw.randint(1, 3) for _ in range(JOBS)]
    rows = [
        {"job": f"j{k}", "arrival": 0.0, "gpus": size, "duration": 1e4, "options": f"a:{size}/{size}=10000|b:{size}=5000|cpu:0/3=90000"}
        for k, size in enumerate(sizes)
    ]
    costs = Costs(start=1.0, resume=2.0, resize=3.0, move=4.0, switch=0.5, doubling=0.5)
    settings: dict[str, Any] = {"min_run": draw.choice([0.0, 0.0, 15.0]), "checkpoint": draw.choice([0.0, 7.0])}
    placement = draw.choice(["first-free", "consolidated", "consolidated:preferred"])
    one, other = (engine_of(rows, "a:2x3/6c,b:1x3/4c,cpu:1x0/6c", costs=costs, placement=placement, **settings) for _ in range(2))
    return one, other


def wish(draw: random.Random, job: int, form: str) -> list[Assignment]:
    """What one job gets."""
    group = draw.randint(0, 2)
    mode = (Mode.SPACE, Mode.TIME, Mode.INTERLEAVE)[group]
    devices = tuple(draw.sample(range(DEVICES), draw.randint(1, 3)))
    option = draw.choice([-1, -1, 0, 1, 2])
    items = {
        "option": Assignment(job, option),
        "sized": Assignment(job, gpus=draw.randint(1, 5), type=draw.choice([-1, 0, 1]), until=draw.choice([np.inf, 30.0])),
        "named": Assignment(job, devices=devices),
        "open": Assignment(job, devices=devices, mode=Mode.SPACE, fraction=0.5),
        "pair": Assignment(job, max(option, -1) if option < 2 else 0, group=group, mode=mode, fraction=draw.choice([1.0, 0.5])),
        "stage": Assignment(job, group=3 + group, mode=Mode.INTERLEAVE, offset=0.5 * (job % 2), together=group == 2),
        "link": Assignment(job, devices=devices, group=6 + group, mode=Mode.INTERLEAVE, offset=0.5 * job),
        "turns": Assignment(job, option, turns=draw.choice([0, 4])),
        "batch": Assignment(job, option, batch=draw.choice([32, 64]), group=draw.choice([-1, 9])),
        "cpus": Assignment(job, cpus=draw.choice([1.0, 3.0])),
        "limit": Assignment(job, option, limit=draw.choice([25.0, 80.0])),
        "within": Assignment(job, within=draw.choice(["node", "rack"]), required=True),
        "nodes": Assignment(job, nodes=(draw.randint(0, 2),)),
        "parts": Assignment(job, parts=(Part("worker", draw.randint(0, 1), draw.randint(1, 2), 1),)),
        "trial": Assignment(job, option, purpose=TRIAL),
        "share": Assignment(job, 0, share=0.5),
    }
    return [items[form], Assignment(job, 1, share=0.3)] if form == "share" and draw.random() < 0.5 else [items[form]]


def plan_after(draw: random.Random, before: list[Assignment], forms: tuple[str, ...]) -> list[Assignment]:
    """Mostly the plan before with some jobs changed, added and left out."""
    plan = [] if draw.random() < 0.2 else [item for item in before if draw.random() < 0.9]
    changed = draw.sample(range(JOBS), draw.randint(0, JOBS if not plan else 3))
    plan = [item for item in plan if item.job not in changed]
    for job in changed:
        plan += wish(draw, job, draw.choice(forms))
    if draw.random() < 0.5:
        draw.shuffle(plan)
    modes: dict[int, Mode] = {}  # the members of a group have one mode, and start together all or none
    return [replace(item, mode=modes.setdefault(item.group, item.mode)) if item.group >= 0 else item for item in plan]


def happens(draw: random.Random, engines: tuple[Engine, Engine]) -> None:
    """Sometimes a node or a device comes or goes, or a gang is locked."""
    what = draw.choice(["", "", "", "", "", "0 drain", "0 down", "0 up", "0 up", "1:1 drain", "1:1 up", "1:1 up", "lock"])
    locked = draw.randrange(JOBS)
    for engine in engines if what else ():
        if what == "lock":
            engine.state.tables.I[Job.LOCKED, locked] ^= 1
            continue
        name, kind = what.split()
        engine.apply(NodeEvent(engine.state.now, f"{engine.state.tables.cluster.nodes[int(name[0])].name}{name[1:]}", kind))


def test_plans_of_all_forms_are_committed_as_one_by_one(request: pytest.FixtureRequest) -> None:
    for world in range(-(-int(request.config.getoption("--plans")) // PLANS_OF_A_WORLD)):
        draw = random.Random(world)
        engines = twins(draw)
        forms = USUAL if world % 3 else (*USUAL, draw.choice(RARE))
        plan: list[Assignment] = []
        for step in range(PLANS_OF_A_WORLD):
            for engine in engines:
                engine.state.now, engine.state.decision = 10.0 * step, step
            happens(draw, engines)
            plan = plan_after(draw, plan, forms)
            expected = kept_assignments(engines[0].grants, plan)
            engines[0].commit(Plan.assign(plan))
            with patch.object(commit_module, "PlanChanges", OneByOne):
                engines[1].commit(Plan.assign(plan))
            assert_alike(*engines, f"world {world}, step {step}")
            kept = engines[0].grants.requests.columns.kept[: len(plan)].tolist()
            if all(item.share == 1.0 for item in plan):  # shares of the time are kept all or none
                assert kept == expected, f"world {world}, step {step}"


def assert_alike(usual: Engine, plain: Engine, where: str) -> None:
    for ours, theirs in zip(columns_of(usual), columns_of(plain)):
        differ = np.argwhere(~np.isclose(ours, theirs, equal_nan=True))
        assert len(differ) == 0, (where, differ.tolist(), ours[tuple(differ.T)], theirs[tuple(differ.T)])
    assert usual.state.out.tolist() == plain.state.out.tolist(), where
    assert [usual.grants.devices(row) for row in range(JOBS)] == [plain.grants.devices(row) for row in range(JOBS)], where
    assert repr(sorted(usual.grants.by_row.items())) == repr(sorted(plain.grants.by_row.items())), where
    assert usual.state.tables.waits_for_turn == plain.state.tables.waits_for_turn, where
    for ours, theirs in zip(logged(usual), logged(plain)):
        assert np.array_equal(ours, theirs, equal_nan=True), where
    assert check_books(usual.state, usual.grants) == [], where


def logged(engine: Engine) -> list[Any]:
    """The log without the options, which are numbered as they are first looked up."""
    log = engine.state.log
    lines = np.delete(log.LI[:, : log.intervals], Interval.OPTION, axis=0)
    return [lines, log.LF[:, : log.intervals], log.LD[: log.LN[1]]]
