"""Small worlds with quotas, and what is wrong in them: each plan is looked at as it is committed, on either clock."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from tests.oracles.quota_rule import Gang, Picture, above_limit, broken_promises, vain_evictions
from tests.systems.gavel.tiny_world import SPEEDS, table

from gantline.core.columns import ASKED_TOGETHER, FREE, Device, Job, Node, Option
from gantline.core.facts import Signal
from gantline.core.inputs import Input, Reserve, SetQueue
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.core.reasons import Reason
from gantline.core.snapshot import Snapshot
from gantline.core.windows import parse_windows
from gantline.engine.assembly.from_trace import assemble
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.drivers.simulation import Simulation, make_driver
from gantline.engine.drivers.stepping import Driver, Stepping, Virtual
from gantline.engine.log import Interval
from gantline.policies.registry import policy_names
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.policies import policy_of
from gantline.traces.trace import Trace

POLICIES = [name for name in policy_names() if name != "recorded"]
#: in which they take turns: Gavel's, which solve linear programs and decide much alike, four times less often
TURNS = [name for cycle in range(4) for at, name in enumerate(POLICIES) if not name.startswith("gavel.") or at % 4 == cycle]
BRIEF: dict[str, dict[str, Any]] = {
    **{name: {"size": 4, "generations": 2} for name in ("pollux", "adaptdl")},
    "shockwave": {"window": 4},
    "synthesizer": {"horizon": 600.0},
}
CHOOSES_WHEN = frozenset({"gaia", "carbonscaler"})  # they put jobs off until electricity is cleaner: no promise waits on a loan then
TYPED = ("sia", "heet-like", "allox", "shockwave")
EVEN = Signal((100.0,), step=200.0)  # a grid on which waiting saves nothing
GRANTED = (Phase.STARTING, Phase.RUNNING, Phase.RESIZING)
NEVER_PREEMPT = frozenset({"fifo"})
ENDLESS = 20_000.0  # beyond the end of such a run
MOST_QUESTIONS = 400  # of one world


@dataclass(frozen=True)
class World:
    """What is simulated; prints as what it takes to try again."""

    jobs: tuple[dict[str, Any], ...]
    cluster: str
    policy: str
    queues: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reserve: str = ""
    changes: tuple[SetQueue, ...] = ()
    closed: bool = False  # all jobs are there at the beginning, and none ends


class Watch:
    """A driver that looks at every committed plan before the one inside has it carried out."""

    def __init__(self, inside: Driver, changes: Sequence[SetQueue]) -> None:
        self.inside, self.gives_up = inside, inside.gives_up
        self.changes = changes
        self.breaches: list[str] = []
        self.by_quota = self.evictions = 0
        self.plan: Plan | None = None
        self.before: Picture | None = None
        self.shown: Picture | None = None  # after the last committed plan
        self._open: dict[int, int] = {}  # row: its interval, at the question
        self._dropped: set[int] = set()  # rows that the policy has stopped of its own accord
        self._held: dict[int, tuple[int, float]] = {}  # row: how many devices it had after the last plan, and since when no fewer

    # --- what a driver does ---------------------------------------------------------------------------------------------
    def wait(self, loop: Stepping) -> float:
        at = self.inside.wait(loop)
        if isinstance(self.inside, Virtual) and not loop.state.regime.round and loop.state.now < at < math.inf:
            self._overdue(loop, at)
        return at

    def elapse(self, loop: Stepping, until: float) -> None:
        self.inside.elapse(loop, until)

    def settle(self, loop: Stepping) -> bool:
        return self.inside.settle(loop)

    def take_in(self, loop: Stepping, value: Input) -> None:
        self.inside.take_in(loop, value)

    def follow(self, loop: Stepping) -> None:
        if self.plan is not None and self.before is not None:
            self._look(loop)
        self.plan = self.before = None
        self.inside.follow(loop)

    # --- what is looked at ----------------------------------------------------------------------------------------------
    def note(self, snapshot: Snapshot, plan: Plan) -> None:
        """The policy has answered."""
        self.plan = plan

    def asked(self, loop: Stepping) -> None:
        """The policy is asked next."""
        self.before = self.picture(loop)
        I = loop.state.tables.I
        self._open = {gang.row: at for gang in self.before.gangs if gang.devices and (at := int(I[Job.INTERVAL, gang.row])) >= 0}

    def _look(self, loop: Stepping) -> None:
        plan, before = self.plan, self.before
        assert plan is not None
        assert before is not None
        after = self.picture(loop, ranked=plan.ranking is not None)
        preempts = plan.ranking is not None and plan.ranking.preempt
        stopped = self._stopped(loop, after)
        by_quota = [row for row, reason in stopped if reason == Reason.QUOTA or (reason == Reason.PREEMPTED and not preempts)]
        if plan.ranking is None:  # what a policy that assigns leaves out is its own choice
            by_quota = [row for row, reason in stopped if reason == Reason.QUOTA]
        ended = [
            int(loop.state.log.LI[Interval.REASON, at]) for at in self._open.values() if not np.isnan(loop.state.log.LF[Interval.END, at])
        ]
        known = [gang for gang in after.gangs if (then := before.gang(gang.row)) is not None and then.waits]
        took = {gang.row for gang in known if gang.devices}
        if not took or took - self._dropped:  # else the policy takes turns: it had stopped them itself, and others borrowed meanwhile
            self.by_quota += ended.count(Reason.QUOTA)
        self._dropped |= {row for row, reason in stopped if reason == Reason.PREEMPTED}
        self.evictions += ended.count(Reason.QUOTA) + ended.count(Reason.PREEMPTED)
        found = [*above_limit(after), *self._broken_promises(loop, after), *self._stopped_for_the_same(loop, before)]
        exact = loop.engine.policy.names_devices
        found += vain_evictions(before, after, [row for row in by_quota if before.gang(row) is not None], preempts=preempts, exact=exact)
        self.breaches += [f"t={loop.state.now:g}: {what}" for what in found]
        self.shown = after
        self._held = {
            gang.row: (len(gang.devices), self._held_since(gang.row, gang.devices, after.now)) for gang in after.gangs if gang.devices
        }

    def _held_since(self, row: int, devices: frozenset[int], now: float) -> float:
        """Since when a row has held as many devices as now, or more; infinity: it holds none."""
        if not devices:
            return math.inf
        size, since = self._held.get(row, (0, now))
        return since if len(devices) <= size else now

    def _overdue(self, loop: Stepping, at: float) -> None:
        """Time passes: no promise may wait for the next thing that happens, once borrowers have had their minimum run."""
        now, loop.state.now = loop.state.now, math.nextafter(at, 0.0)
        picture = self.picture(loop, ranked=loop.engine.ranks)
        loop.state.now = now
        if self.shown is not None and not any(gang.waits and self.shown.gang(gang.row) is None for gang in picture.gangs):
            self.breaches += [f"until t={at:g}: {what}" for what in self._broken_promises(loop, picture)]

    def _broken_promises(self, loop: Stepping, picture: Picture) -> list[str]:
        return [] if loop.engine.policy.name in CHOOSES_WHEN else list(broken_promises(picture))

    def _stopped(self, loop: Stepping, after: Picture) -> list[tuple[int, int]]:
        """Rows that held devices at the question and hold none now, with the reason."""
        LI, LF = loop.state.log.LI, loop.state.log.LF
        rows = [(row, at) for row, at in self._open.items() if (gang := after.gang(row)) is not None and gang.waits]
        return [(row, int(LI[Interval.REASON, at])) for row, at in rows if not np.isnan(LF[Interval.END, at])]

    def _stopped_for_the_same(self, loop: Stepping, before: Picture) -> list[str]:
        """Rows that a quota stopped and that run again at the same instant, no larger than before."""
        state, found = loop.state, []
        for row, at in self._open.items():
            again = int(state.tables.I[Job.INTERVAL, row])
            if again not in (-1, at) and int(state.log.LI[Interval.REASON, at]) == Reason.QUOTA:
                had = frozenset().union(*(gang.devices for gang in before.gangs if gang.row == row))
                if state.tables.kept_free.intersection(loop.engine.grants.devices(row)) - had:
                    continue  # it goes on in a window, whose idle devices are not for everybody
                found.append(f"for the same: {state.tables.ids[row]} was stopped by a quota and starts again at once")
        return found

    def picture(self, loop: Stepping, ranked: bool = False) -> Picture:
        """Who holds what, as the tables say."""
        state, grants = loop.state, loop.engine.grants
        t, now = state.tables, state.now
        I, D = t.I, t.D
        shrunk = max((change.time for change in self.changes if change.time <= now), default=-math.inf)
        gangs = []
        for row in state.rows.tolist():
            phase = Phase(int(I[Job.PHASE, row]))
            if phase not in (*GRANTED, Phase.PENDING):
                continue  # it has been told to stop
            grant = t.granted.get(row)
            if grant is not None and grant.fluid:
                continue  # a share of the time is of no device in particular
            devices = frozenset(grants.devices(row)) if phase in GRANTED else frozenset()
            movable = (
                phase in (Phase.STARTING, Phase.RUNNING) and not I[Job.LOCKED, row] and now >= t.F[Job.LAST_START, row] + state.min_run
            )
            may_stop = bool(movable) and not (devices and t.kept_free.issuperset(devices))
            first, count = int(I[Job.OPTION_FIRST, row]), int(I[Job.OPTION_COUNT, row])
            sizes = t.options.I[Option.GPUS, first : first + count]
            size, least = int(I[Job.GPUS, row]), min(int(I[Job.GPUS, row]), int(I[Job.MIN_GPUS, row]), *sizes.tolist())
            gangs.append(
                Gang(
                    row,
                    t.ids[row],
                    t.queues[int(I[Job.QUEUE, row])],
                    devices,
                    max(1, size if ranked else least),
                    size,
                    frozenset(t.options.I[Option.TYPE, first : first + count].tolist()),
                    may_stop,
                    self._held_since(row, devices, now) < shrunk and not may_stop,
                    float(t.F[Job.KEY, row]) if ranked else math.nan,
                    int(I[Job.CONSOLIDATE, row]) == ASKED_TOGETHER,
                )
            )
        usable = {device for device in range(D.shape[1]) if t.NI[Node.UP, D[Device.NODE, device]] == 1 and D[Device.CLOSED, device] == 0}
        place = {device: (int(D[Device.NODE, device]), int(t.NI[Node.TYPE, D[Device.NODE, device]])) for device in usable}
        free = frozenset(device for device in usable if D[Device.HOLDER, device] == FREE)
        quotas = {name: (queue.quota, queue.borrow) for name, queue in t.queue_tree.items()}
        return Picture(now, tuple(gangs), free, place, quotas)


def run_world(world: World) -> list[str]:
    """What is wrong in it: run it to its end, and look at every plan."""
    spec = RunSpec.of({"queues": world.queues, "carbon": EVEN, **world.options})
    cluster = read_cluster(world.cluster)
    policy = policy_of(world.policy, BRIEF.get(world.policy, {}))
    rules = RunRules.of(spec, cluster)
    trace = Trace.from_records(world.jobs)
    run = assemble(trace, cluster, policy, spec, rules)
    engine = run.engine
    windows: list[Input] = [Reserve(0.0, window) for window in parse_windows(world.reserve)]
    inputs = tuple(sorted((*windows, *world.changes), key=lambda one: one.time))
    watch = Watch(make_driver(spec.executor, engine), world.changes)
    engine.recorder = watch.note
    loop = Simulation(engine, rules.admission, rules.estimates, spec.until, node_events=inputs, driver=watch)
    with engine.asked_often():
        for _, _ in zip(loop.steps(), range(MOST_QUESTIONS)):
            watch.asked(loop)
    loop.engine.grants.close_open_intervals()
    breaches = list(dict.fromkeys(watch.breaches))
    if world.closed and watch.by_quota > len(world.jobs):
        breaches.append(f"no rest: {watch.by_quota} evictions by quotas among {len(world.jobs)} jobs")
    if world.closed and world.policy in NEVER_PREEMPT and watch.evictions > len(world.jobs):
        breaches.append(f"no rest: {watch.evictions} evictions among {len(world.jobs)} jobs")
    return breaches


@cache
def _throughputs() -> Any:
    return table()


def draw_world(seed: int) -> World:
    """The world of a seed: the policies take turns, everything else is drawn."""
    draw = random.Random(seed)
    policy = TURNS[seed % len(TURNS)]
    typed = policy.startswith("gavel") or policy in TYPED
    cluster = "v100:2,k80:2" if typed else draw.choice(["1x4", "2x2", "2x3", "1x6", "2x4", "1x8"])
    gpus = 4 if typed else int(cluster[0]) * int(cluster[2])
    queues, names = _queues(draw, gpus)
    closed = draw.random() < 0.2
    jobs = _jobs(draw, names, gpus, typed, closed)
    options: dict[str, Any] = {"executor": draw.choice(["instant", "instant", "acknowledged", f"faulty:{draw.randrange(5)}"])}
    if policy == "elasticflow":  # it promises deadlines, which no delayed message may break
        options["executor"] = "instant"
    options["min_run"] = draw.choice([0.0, 0.0, 5.0, 60.0])
    options["round"] = draw.choice([None, None, 30.0]) if not typed else 30.0
    options["costs"] = draw.choice(["", "", "resume=10"])
    options["until"] = 1_000.0 if closed else 5_000.0
    if typed:
        options["throughputs"] = _throughputs()
    reserve, changes = "", ()
    if draw.random() < 0.25:
        start = draw.choice([0, 30, 100])
        reserve = f"gpus={draw.choice([1, 2])},from={start},for={draw.choice([50, 200])}"
        if draw.random() < 0.5:
            reserve += f",queue={draw.choice(names)}"
    elif draw.random() < 0.2:
        name = draw.choice([part.partition("=")[0] for part in queues.split(",")])
        changes = (SetQueue(draw.choice([20.0, 50.0]), name, 1.0, float(draw.choice([0, 1, 2])), float(draw.choice([0, 1]))),)
    return World(jobs, cluster, policy, queues, options, reserve, changes, closed)


def _queues(draw: random.Random, gpus: int) -> tuple[str, list[str]]:
    """Quotas as people write them, and the queues in which there are jobs."""

    def one(name: str, quota: int) -> str:
        return f"{name}={quota}:{draw.choice(['0', '1', '2', 'inf', 'inf'])}{draw.choice(['', '', ':2'])}"

    if draw.random() < 0.3:
        half = gpus // 2
        parent = draw.choice([f"a={half}:{draw.choice(['0', '1', 'inf'])}", ""])
        inside = draw.randint(0, half)
        parts = [*filter(None, [parent]), one("a/x", inside), one("a/y", half - inside), one("b", draw.choice([half, half - 1]))]
        return ",".join(parts), ["a/x", "a/y", "b"]
    names = ["a", "b", "c"][: draw.choice([2, 2, 3])]
    cuts = sorted(draw.randint(0, gpus) for _ in names[1:])
    shares = [high - low for low, high in zip([0, *cuts], [*cuts, gpus])]
    quotas = ",".join(one(name, share) for name, share in zip(names, shares))
    return quotas, names + ["d"] * (draw.random() < 0.2)


def _jobs(draw: random.Random, names: list[str], gpus: int, typed: bool, closed: bool) -> tuple[dict[str, Any], ...]:
    """Often one queue has taken what there is when jobs of the others arrive."""
    found, arrival, lent = [], 0.0, draw.choice([*names, ""])
    first = draw.randint(2, 4) if lent else 0
    for number in range(draw.randint(4, 8)):
        borrows = number < first
        arrival += 0.0 if closed or borrows else draw.choice([0.0, 10.0, 20.0, 60.0])
        duration = ENDLESS if closed else float(draw.choice([300, 600, 900] if borrows else [20, 50, 100, 100, 300, 900]))
        size = draw.choice([1, 1, 2] if typed else [1, 1, 2, 2, 3, min(4, gpus)])
        queue = lent if borrows else draw.choice(names)
        job = {"job": f"j{number}", "arrival": arrival, "gpus": size, "duration": duration, "queue": queue}
        if typed:
            key = draw.choice(["big", "small", "flat"])
            job |= {"work": duration * SPEEDS[key][0] * size, "throughput_key": f"('{key}', {size})"}
        else:
            ranged = draw.random() < 0.5
            job |= {"min_gpus": draw.randint(1, size) if ranged else size}
            job |= {"max_gpus": min(gpus, size + draw.choice([0, 1, 2])) if ranged else size}
        found.append(job)
    return tuple(found)
