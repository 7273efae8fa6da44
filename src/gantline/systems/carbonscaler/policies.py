"""`carbonscaler`: elastic jobs with a deadline grow while the grid is clean (Hanafy et al., SIGMETRICS 2024)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import RefusedError
from gantline.core.facts import Signal
from gantline.core.plan import Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.pools import Pool, plan_of, pools

# CarbonScaler's plan of one elastic job: server by server to the slot in which it does most work per gram.
#
# With work per watt that falls with every further server no other plan in whole server-slots does as much work for less
# carbon (Hanafy et al., section 4). It may do more work than there is, so that another plan does the job for less
# (`cleanest`). Ties go to the earlier slot, then to fewer servers; the authors' program leaves them to an unstable
# sort.


class ServerProfile(NamedTuple):
    """What a job does and draws with each number of servers that it may have, in rising order."""

    servers: Sequence[int]
    throughput: Sequence[float]
    """Work per second."""
    power: Sequence[float]
    """Watts."""


def greedy(profile: ServerProfile, work: float, carbon: Floats, seconds: Floats, room: Ints) -> list[int] | None:
    """How many servers in each slot; None: even with all of them the work is not done by the last slot.

    `carbon` is the intensity in each slot, `seconds` how long the slot works, `room` how many servers it still has. A step of the
    profile is taken only after the one below it; a slot's first step is the least number of servers that the job may have.
    """
    if not profile.servers:
        return None
    steps = [0] * len(carbon)  # entries of the profile that each slot has taken
    heap = [(-_gain(profile, 0, carbon[slot]), slot, 0) for slot in range(len(carbon)) if seconds[slot] > 0]
    heapq.heapify(heap)
    done = [0.0] * len(carbon)
    while reduce(add, done, 0.0) < work:  # sum() makes up for lost digits from Python 3.12 on, and a plan may just suffice
        if not heap:
            return None
        _, slot, entry = heapq.heappop(heap)
        if profile.servers[entry] > room[slot]:
            continue
        steps[slot], done[slot] = entry + 1, profile.throughput[entry] * float(seconds[slot])
        if entry + 1 < len(profile.servers) and profile.throughput[entry + 1] > profile.throughput[entry]:
            heapq.heappush(heap, (-_gain(profile, entry + 1, carbon[slot]), slot, entry + 1))
    return [profile.servers[count - 1] if count else 0 for count in steps]


def _gain(profile: ServerProfile, entry: int, carbon: float) -> float:
    """Work per gram of a step; where nothing is emitted it comes first."""
    more_work = profile.throughput[entry] - (profile.throughput[entry - 1] if entry else 0.0)
    more_power = profile.power[entry] - (profile.power[entry - 1] if entry else 0.0)
    grams = more_power * carbon
    return more_work / grams if grams > 0 else float("inf")


# The plan with which one elastic job emits least until its work is done: exact, by a search over states.
#
# Every server of a slot works and draws for the whole slot, but for the last slot that a plan uses: the job ends there when its work is
# done. Slot by slot, a state is the work that is done and the carbon that is emitted. Of two states the one that has done less for more
# carbon is dropped, and so is every state from which even fractions of servers in the slots to come would emit as much as the best plan
# known. That is the greedy plan first; among plans that emit the same it stands.

_EQUAL = 1e-9  # plans that emit so nearly the same emit the same


class _Variants(NamedTuple):
    """What each number of servers does and emits in one slot, none first; `pause` is the part of it in which they draw and do not work."""

    adds: Floats
    costs: Floats
    pause: float

    def until_done(self, variant: int | Ints, work: Floats | float) -> Floats | float:
        """What is emitted until so much work is done."""
        return self.costs[variant] * (self.pause + (1.0 - self.pause) * work / self.adds[variant])


def cleanest(profile: ServerProfile, work: float, carbon: Floats, seconds: Floats, room: Ints, lasts: Floats) -> list[int] | None:
    """As `greedy`; a server draws power for as long as the slot `lasts`, and works for the last `seconds` of it."""
    first = greedy(profile, work, carbon, seconds, room)
    if first is None or work <= 0.0:
        return first
    slots = []
    for most, works, level, long in zip(room.tolist(), seconds.tolist(), carbon.tolist(), lasts.tolist()):
        count = sum(size <= most for size in profile.servers) if works > 0 else 0
        adds, costs = np.array([0.0, *profile.throughput[:count]]) * works, np.array([0.0, *profile.power[:count]]) * level * long
        slots.append(_Variants(adds, costs, 1.0 - works / long if long > 0 else 0.0))
    places = {size: k + 1 for k, size in enumerate(profile.servers)} | {0: 0}
    known, emitted = _until_done([places[size] for size in first], slots, work)
    found = _search(slots, work, emitted) or known
    return [0 if k == 0 else profile.servers[k - 1] for k in found] + [0] * (len(first) - len(found))


def _until_done(plan: list[int], slots: list[_Variants], work: float) -> tuple[list[int], float]:
    """The plan up to the slot in which the work is done, and what it emits."""
    emitted = 0.0
    for slot, variant in enumerate(plan):
        variants = slots[slot]
        if variant and work <= variants.adds[variant]:
            return plan[: slot + 1], emitted + float(variants.until_done(variant, work))
        work, emitted = work - float(variants.adds[variant]), emitted + float(variants.costs[variant])
    return plan, emitted


def _search(slots: list[_Variants], work: float, known: float) -> list[int] | None:
    """The place in each slot's ways of the best plan; None: no plan is better than the known one."""
    best, most, least = None, known * (1.0 - _EQUAL), _bounds(slots)
    done, grams = np.zeros(1), np.zeros(1)
    steps: list[tuple[Ints, Ints]] = []  # of each slot: the state before, and the way taken
    for slot, variants in enumerate(slots):
        for variant in range(1, len(variants.adds)):
            emitted = np.where(work - done <= variants.adds[variant], grams + variants.until_done(variant, work - done), np.inf)
            state = int(np.argmin(emitted))
            if emitted[state] < most:
                most, best = float(emitted[state]) * (1.0 - _EQUAL), (*_path(steps, state), variant)
        total, spent = (done[:, None] + variants.adds).ravel(), (grams[:, None] + variants.costs).ravel()
        open_ = np.flatnonzero((total < work) & (spent + least(slot + 1, work - total) < most))
        if not len(open_):
            break
        order = open_[np.lexsort((-total[open_], spent[open_]))]
        kept = order[np.flatnonzero(np.diff(np.maximum.accumulate(total[order]), prepend=-1.0) > 0.0)]
        steps.append((kept // len(variants.adds), kept % len(variants.adds)))
        done, grams = total[kept], spent[kept]
    return None if best is None else list(best)


def _path(steps: list[tuple[Ints, Ints]], state: int) -> tuple[int, ...]:
    """The ways that led to a state."""
    found = []
    for before, variant in reversed(steps):
        found.append(int(variant[state]))
        state = int(before[state])
    return tuple(reversed(found))


def _bounds(slots: list[_Variants]) -> Callable[[int, Floats], Floats]:
    """The least that work emits in the slots from one on, where servers may be had in fractions; infinity: they cannot do it."""
    pieces = [(slot, *piece) for slot, variants in enumerate(slots) for piece in _hull(variants.adds, variants.costs)]
    of_slot, adds, costs = np.array(sorted(pieces, key=lambda piece: piece[2] / piece[1])).reshape(-1, 3).T

    def least(slot: int, work: Floats) -> Floats:
        later = of_slot >= slot
        reach, emits = (np.concatenate(([0.0], np.cumsum(each[later]))) for each in (adds, costs))
        found: Floats = np.where(work > reach[-1] + _EQUAL * reach[-1], np.inf, np.interp(work, reach, emits))
        return found

    return least


def _hull(adds: Floats, costs: Floats) -> list[tuple[float, float]]:
    """The steps of the convex curve below the ways of a slot, by what they add and cost."""
    found, at = [], 0
    while at + 1 < len(adds):
        slopes = (costs[at + 1 :] - costs[at]) / (adds[at + 1 :] - adds[at])
        best = at + 1 + int(len(slopes) - 1 - np.argmin(slopes[::-1]))
        found.append((float(adds[best] - adds[at]), float(costs[best] - costs[at])))
        at = best
    return found


# The slots that a plan is made of: from one change of the signal to the next, the first one cut by now.


@dataclass(frozen=True)
class Slots:
    """Where each slot begins and ends, the intensity in it, and the seconds that a change of size costs."""

    begin: Floats
    end: Floats
    carbon: Floats
    cost: float

    @staticmethod
    def until(signal: Signal, now: float, last: float, cost: float) -> Slots:
        edges = np.arange(signal.next_step(now), max(last, now), signal.step)
        begin = np.concatenate(([now], edges))
        return Slots(begin, np.append(edges, signal.next_step(begin[-1])), signal.at(begin), cost)

    def __len__(self) -> int:
        return len(self.begin)

    def working_until(self, deadline: float, changed: Bools | None = None) -> Floats:
        """Seconds of work in each slot before a deadline, less what a change costs: where the size changes, or (None) everywhere."""
        lost = self.cost if changed is None else self.cost * changed
        seconds: Floats = np.maximum(np.minimum(self.end, deadline) - self.begin - lost, 0.0)
        return seconds

    def lasting_until(self, deadline: float) -> Floats:
        """Seconds of each slot before a deadline."""
        seconds: Floats = np.maximum(np.minimum(self.end, deadline) - self.begin, 0.0)
        return seconds


# `carbonscaler`: elastic jobs with a deadline grow while the grid is clean (Hanafy et al., SIGMETRICS 2024).


@dataclass(frozen=True)
class CarbonScaler(Policy):
    """Each job gets its servers in the slots where they do most work per gram, so that it is done by its deadline.

    A job is planned when it comes, on what the plans before it leave, and again when it lags behind its plan or devices were lost.
    One whose deadline cannot be met any more runs as wide as it may.
    """

    name = "carbonscaler"
    paper = "Hanafy et al., CarbonScaler: Leveraging Cloud Workload Elasticity for Optimizing Carbon-Efficiency, SIGMETRICS 2024"
    needs = frozenset({"remaining", "carbon"})

    slack: float = parameter(1.0, "deadline of a job that has none: so many times its length later than at once", low=0.0, finite=True)
    compat: str = parameter(
        "none", "'none' (the plan of least carbon), 'carbonscaler' (the paper's greedy plan)", one_of=("none", "carbonscaler")
    )

    def decide(self, snapshot: Snapshot) -> Plan:
        signal, memory = snapshot.facts.grid.carbon, snapshot.memory or {}
        if signal is None:
            raise RefusedError("no carbon intensity is known", where="policy 'carbonscaler'", fix="give --carbon FILE.csv")
        plans, notes, shared = {}, [], []
        for pool in pools(snapshot):
            known = memory.get("plans", {})
            kept = {str(row): known[str(row)] for row in pool.of(snapshot.jobs.rows).tolist() if str(row) in known}
            grants, planned, late = _PoolPlanner(self, signal, pool, kept).decide()
            shared.append((pool, grants))
            plans.update(planned)
            notes += [f"job '{snapshot.jobs.ids[job]}' cannot meet its deadline and runs as wide as it may" for job in late]
        until = float(signal.next_step(snapshot.now))
        return plan_of(snapshot, shared, valid_until=until, memory={"plans": plans}, notes=tuple(notes))


class _PoolPlanner:
    """One decision for the jobs that compete for one device type."""

    def __init__(self, policy: CarbonScaler, signal: Signal, pool: Pool, known: dict[str, Any]) -> None:
        self.policy, self.signal, self.pool, self.known = policy, signal, pool, known
        facts = pool.snapshot.facts
        self.cost = max(facts.costs.start, facts.costs.resume, facts.costs.resize, facts.costs.move)
        power = facts.grid.power.get(pool.snapshot.cluster.types[pool.kind])
        self.watts = 1.0 if power is None else power.busy
        self.now, self.left = pool.snapshot.now, pool.of(pool.snapshot.jobs.remaining)

    def decide(self) -> tuple[Ints, dict[str, Any], list[int]]:
        """Devices of each job now, the plans to remember, and the jobs whose deadline was just given up."""
        rows = [str(row) for row in self.pool.of(self.pool.snapshot.jobs.rows).tolist()]
        ends = {row: self._deadline(place, row) for place, row in enumerate(rows)}
        slots = Slots.until(self.signal, self.now, max(ends.values(), default=self.now), self.cost)
        room = np.full(len(slots), self.pool.capacity)
        plans: dict[str, Any] = {}
        late = []
        grants = np.zeros(len(rows), dtype=np.int64)
        for place, row in enumerate(rows):
            work = float(self.left[place])
            sizes = self._stands(slots, room, place, row, work) or self._anew(slots, room, place, work, ends[row])
            if sizes is None:  # no plan meets the deadline
                if not self.known.get(row, {}).get("late"):
                    late.append(int(self.pool.jobs[place]))
                widest = [size for size in self._profile(place).servers if size <= room[0]]
                sizes = [max(widest, default=0)]
                plans[row] = {"end": ends[row], "late": True}
            else:
                plans[row] = {"end": ends[row], "begin": slots.begin[: len(sizes)].tolist(), "servers": sizes}
            grants[place] = sizes[0]
            room[: len(sizes)] -= sizes
        return grants, plans, late

    def _stands(self, slots: Slots, room: Ints, place: int, row: str, left: float) -> list[int] | None:
        """What is left of the plan of a job, if it still has its room and does all the work."""
        known = self.known.get(row)
        if known is None or "servers" not in known:
            return None
        at = np.searchsorted(np.array(known["begin"]), slots.begin, side="right") - 1
        inside = slots.begin < known["end"]
        sizes = [int(known["servers"][k]) if k >= 0 and ok else 0 for k, ok in zip(at.tolist(), inside.tolist())]
        if (np.array(sizes) > room).any():
            return None
        profile = self._profile(place)
        speed = dict(zip(profile.servers, profile.throughput)) | {0: 0.0}
        if any(size not in speed for size in sizes):
            return None
        jobs = self.pool.snapshot.jobs
        held = int(self.pool.of(jobs.held)[place]) if self.pool.of(jobs.running)[place] else 0
        changed = np.diff(np.array([held, *sizes])) != 0
        done = sum(speed[size] * seconds for size, seconds in zip(sizes, slots.working_until(known["end"], changed).tolist()))
        return sizes if done >= left * (1.0 - 1e-9) else None

    def _anew(self, slots: Slots, room: Ints, place: int, left: float, end: float) -> list[int] | None:
        profile, working = self._profile(place), slots.working_until(end)
        if self.policy.compat == "carbonscaler":
            return greedy(profile, left, slots.carbon, working, room)
        return cleanest(profile, left, slots.carbon, working, room, slots.lasting_until(end))

    def _profile(self, place: int) -> ServerProfile:
        curves = self.pool.curves
        own = slice(int(curves.first[place]), int(curves.first[place + 1]))
        sizes, speeds = curves.size[own].tolist(), curves.rate[own].tolist()
        rising = [k for k in range(len(sizes)) if k == 0 or speeds[k] > max(speeds[:k])]
        return ServerProfile([sizes[k] for k in rising], [speeds[k] for k in rising], [sizes[k] * self.watts for k in rising])

    def _deadline(self, place: int, row: str) -> float:
        """The job's own, or the one that its slack gives it when it comes."""
        jobs = self.pool.snapshot.jobs
        declared = float(self.pool.of(jobs.deadline)[place])
        if declared == declared:
            return declared
        if row in self.known:
            return float(self.known[row]["end"])
        profile, asked = self._profile(place), int(self.pool.of(jobs.gpus)[place])
        if not profile.servers:  # nothing that it could run on is there now
            return self.now + self.signal.step
        speed = max((t for n, t in zip(profile.servers, profile.throughput) if n <= max(asked, profile.servers[0])), default=1.0)
        length = float(self.left[place]) / speed + 2.0 * self.cost
        return self.now + length * (1.0 + self.policy.slack) + self.signal.step
