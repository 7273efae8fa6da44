"""What quotas promise, checked on pictures of a small world: who holds what, who waits, which devices are free. Plain and slow.

A picture is taken before each question to the policy and after each committed plan. Whether "a stop would let it start" is found by trying
every set of gangs that may be stopped, and every way to place what starts. Where the rule leaves a choice, the checker accepts either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

MOST_STOPS = 3  # in one set that is tried
OTHERS = "(without a quota)"  # the queues without a quota have together what is not promised


@dataclass(frozen=True)
class Gang:
    """A job in a picture."""

    row: int
    job: str
    queue: str
    devices: frozenset[int]  # none: it waits
    least: int  # the fewest devices with which it may run
    size: int  # those that it asks for
    types: frozenset[int]  # of devices on which it may run
    may_stop: bool = False  # now: it has had its minimum run, nothing locks it
    excused: bool = False  # it was granted before its quota shrank, and may not be stopped yet
    rank: float = math.nan  # in the policy's order, where it ranks jobs; infinity: it is not to run
    one_node: bool = False

    @property
    def waits(self) -> bool:
        return not self.devices


@dataclass(frozen=True)
class Picture:
    """One instant."""

    now: float
    gangs: tuple[Gang, ...]  # that run or wait
    free: frozenset[int]  # devices that any gang may take
    place: Mapping[int, tuple[int, int]]  # the node and the type of each device
    quotas: Mapping[str, tuple[float, float]]  # what a queue is promised, and may borrow; infinity: no limit

    def gang(self, row: int) -> Gang | None:
        return next((gang for gang in self.gangs if gang.row == row), None)

    # --- the tree -------------------------------------------------------------------------------------------------------
    def chain(self, queue: str) -> tuple[str, ...]:
        """The queue and those above it that are promised something; those without a quota are one queue."""
        parts = queue.split("/")
        names = tuple("/".join(parts[: end + 1]) for end in reversed(range(len(parts))))
        found = tuple(name for name in names if math.isfinite(self.promise(name)))
        return found or (OTHERS,)

    def promise(self, name: str) -> float:
        """What a queue is promised; infinity: neither it nor a queue below it has a quota."""
        if name == OTHERS:
            top = {known.split("/")[0] for known in self.quotas}
            return max(0.0, len(self.place) - sum(own for one in top if math.isfinite(own := self.promise(one))))
        own = self.quotas.get(name, (math.inf, math.inf))[0]
        if math.isfinite(own):
            return own
        below = {"/".join(known.split("/")[: name.count("/") + 2]) for known in self.quotas if known.startswith(f"{name}/")}
        promised = [each for child in below if math.isfinite(each := self.promise(child))]
        return sum(promised) if promised else math.inf

    def is_own(self, queue: str) -> bool:
        """Whether the rule says what this very queue is promised: not so below a quota beside queues that have one."""
        return self.chain(queue)[0] in (queue, OTHERS)

    def limit(self, name: str) -> float:
        return sum(self.quotas.get(name, (math.inf, math.inf)))

    def limits(self) -> Iterator[tuple[str, float]]:
        yield from ((name, limit) for name in self.quotas if math.isfinite(limit := self.limit(name)))

    def within(self, name: str) -> list[Gang]:
        """The gangs of a queue and of those below it."""
        if name == OTHERS:
            return [gang for gang in self.gangs if self.chain(gang.queue) == (OTHERS,)]
        return [gang for gang in self.gangs if gang.queue == name or gang.queue.startswith(f"{name}/")]

    def held(self, name: str) -> int:
        """Devices, each counted once although gangs share it."""
        return len(frozenset().union(*(gang.devices for gang in self.within(name))))

    def apart(self, queue: str, other: str) -> tuple[str, ...]:
        """The queues of the first chain that do not hold the second one."""
        theirs = self.chain(other)
        return tuple(name for name in self.chain(queue) if name not in theirs)

    # --- what if --------------------------------------------------------------------------------------------------------
    def without(self, rows: Iterable[int]) -> Picture:
        """The same with these gangs stopped."""
        gone = frozenset(rows)
        freed = frozenset().union(*(gang.devices for gang in self.gangs if gang.row in gone))
        still = frozenset().union(*(gang.devices for gang in self.gangs if gang.row not in gone))
        gangs = tuple(replace(gang, devices=frozenset()) if gang.row in gone else gang for gang in self.gangs)
        return replace(self, gangs=gangs, free=self.free | (freed - still) & frozenset(self.place))

    def with_gang(self, row: int, devices: frozenset[int]) -> Picture:
        """The same with a gang on these devices."""
        gangs = tuple(replace(gang, devices=devices) if gang.row == row else gang for gang in self.gangs)
        return replace(self, gangs=gangs, free=self.free - devices)

    def in_limits(self, queue: str) -> bool:
        """Whether the queue and those above it hold no more than they may."""
        names = [queue, *self.chain(queue)]
        parts = queue.split("/")
        names += ["/".join(parts[:end]) for end in range(1, len(parts))]
        return all(self.held(name) <= self.limit(name) for name in names if name in self.quotas)

    def places(self, gang: Gang, size: int) -> Iterator[frozenset[int]]:
        """Every way to place a gang of that size, by how many devices of each node."""
        for kind in sorted(gang.types):
            by_node: dict[int, list[int]] = {}
            for device in sorted(self.free):
                node, its_type = self.place[device]
                if its_type == kind:
                    by_node.setdefault(node, []).append(device)
            for counts in _counts([len(each) for each in by_node.values()], size):
                if not gang.one_node or sum(count > 0 for count in counts) == 1:
                    yield frozenset(device for each, count in zip(by_node.values(), counts) for device in each[:count])

    def can_all_start(self, gangs: Sequence[tuple[Gang, int]]) -> bool:
        """Whether these gangs can be placed beside all others with so many devices, and no queue holds more than it may."""
        if not gangs:
            return True
        (first, size), rest = gangs[0], gangs[1:]
        for devices in self.places(first, size):
            then = self.with_gang(first.row, devices)
            if then.in_limits(first.queue) and then.can_all_start(rest):
                return True
        return False


def _counts(most: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """All ways to take `total` from places with so many each."""
    if not most:
        if total == 0:
            yield ()
        return
    for here in range(min(most[0], total), -1, -1):
        for rest in _counts(most[1:], total - here):
            yield (here, *rest)


# --- no queue holds more than its limit -------------------------------------------------------------------------------------
def above_limit(picture: Picture) -> Iterator[str]:
    """Queues that hold more than they may, but for what was granted before a quota shrank and may not be stopped yet."""
    for name, limit in picture.limits():
        gangs = [gang for gang in picture.within(name) if gang.devices]
        if picture.held(name) > limit and not all(gang.excused for gang in gangs):
            holders = ", ".join(f"{gang.job} ({len(gang.devices)})" for gang in gangs)
            yield f"limit: '{name}' may hold {limit:g} and holds {picture.held(name)}: {holders}"


# --- no promise waits for a loan --------------------------------------------------------------------------------------------
def broken_promises(picture: Picture) -> Iterator[str]:
    """Jobs that wait within the promise of their queue while a stop of borrowers would let them start."""
    for queue in sorted({gang.queue for gang in picture.gangs if gang.waits and picture.is_own(gang.queue)}):
        found = [(gang, _stops_for(picture, gang)) for gang in _next_of(picture, queue)]
        if found and all(stops is not None for _, stops in found):
            gang, stops = found[0]
            names = ", ".join(one.job for one in picture.gangs if one.row in (stops or ()))
            yield f"promise: {gang.job} ({gang.size}) of '{queue}' waits within its promise although {names or 'nothing'} could be stopped"


def _next_of(picture: Picture, queue: str) -> list[Gang]:
    """The job of a queue that the policy ranks first, or all of them where it does not rank: any may be its first."""
    most = min((picture.limit(name) for name in (queue, *picture.chain(queue))), default=math.inf)
    waiting = [gang for gang in picture.gangs if gang.queue == queue and gang.waits and gang.size <= most]  # larger ones are passed
    ranked = [gang for gang in waiting if not math.isnan(gang.rank)]
    if not ranked:
        return waiting
    allowed = [gang for gang in ranked if math.isfinite(gang.rank)]
    return [min(allowed, key=lambda gang: (gang.rank, gang.row))] if allowed else []


def _stops_for(picture: Picture, gang: Gang) -> tuple[int, ...] | None:
    """Borrowers whose stop lets the gang start within its promise, whichever of its sizes it is to have; None: there are none."""
    found: tuple[int, ...] | None = None
    for size in {gang.least, gang.size}:
        found = _stops_for_size(picture, gang, size)
        if found is None:
            return None
    return found


def _stops_for_size(picture: Picture, gang: Gang, size: int) -> tuple[int, ...] | None:
    loans = [one for one in picture.gangs if one.devices and one.may_stop and _is_loan(picture, one, gang)]
    for count in range(1, min(MOST_STOPS, len(loans)) + 1):
        for stops in permutations(loans, count):
            rows = [one.row for one in stops]
            each_is_loan = all(_is_loan(picture.without(rows[:at]), one, gang) for at, one in enumerate(stops))
            if each_is_loan and _starts_within_promise(picture.without(rows), gang, size):
                return tuple(rows)
    return None


def _is_loan(picture: Picture, holder: Gang, gang: Gang) -> bool:
    """Whether a gang holds what its queue has borrowed, seen from the queue of another: that queue may claim it back."""
    lenders = picture.apart(holder.queue, gang.queue)
    return bool(lenders) and all(picture.held(name) > picture.promise(name) for name in lenders)


def _starts_within_promise(picture: Picture, gang: Gang, size: int) -> bool:
    for devices in picture.places(gang, size):
        then = picture.with_gang(gang.row, devices)
        owners = picture.chain(gang.queue)
        own = then.held(owners[0]) <= then.promise(owners[0])
        if own and then.in_limits(gang.queue) and _all_own(then, gang):
            return True
    return False


def _all_own(picture: Picture, gang: Gang) -> bool:
    """Whether what the queue holds is promised all the way up: a quota above it bounds the sum of those below."""
    return all(picture.held(name) <= picture.promise(name) for name in picture.chain(gang.queue))


# --- no eviction for nothing ------------------------------------------------------------------------------------------------
def vain_evictions(before: Picture, after: Picture, evicted: Iterable[int], *, preempts: bool, exact: bool) -> Iterator[str]:
    """Gangs that a quota stopped although that let nothing start, or only what has no claim on their devices.

    `exact`: the policy names devices, and what starts can be nowhere else; else it may be anywhere among devices of the same type.
    """
    known = {gang.row: gang.devices for gang in before.gangs}
    started = [_where_it_is(after, gang) for gang in after.gangs if gang.devices - known.get(gang.row, gang.devices)]
    for row in sorted(evicted):
        gang = before.gang(row)
        assert gang is not None
        if any(before.held(name) > before.limit(name) for name in before.quotas if gang in before.within(name)):
            continue  # a quota has shrunk
        rest = after if exact else after.without([one.row for one in started])
        needs = [] if exact else [(one, len(one.devices)) for one in started]
        if gang.devices <= rest.free:
            restored = rest.with_gang(row, gang.devices)
            if restored.in_limits(gang.queue) and restored.can_all_start(needs):
                yield f"in vain: {gang.job} was stopped, and {', '.join(one.job for one in started) or 'nothing'} could start beside it"
                continue
        if not any(_has_claim(before, after, gang, one, preempts) for one in started):
            takers = ", ".join(f"{one.job} of '{one.queue}'" for one in started)
            yield f"no claim: {gang.job} of '{gang.queue}' was stopped for {takers or 'nothing'}"
            continue
        yield from _should_have_shrunk(before, rest, gang, needs)


def _where_it_is(picture: Picture, gang: Gang) -> Gang:
    """The gang, which may be on devices of no other types than it has."""
    return replace(gang, types=frozenset(picture.place[device][1] for device in gang.devices if device in picture.place) or gang.types)


def _has_claim(before: Picture, after: Picture, holder: Gang, taker: Gang, preempts: bool) -> bool:
    """Whether a gang may be stopped by a quota for the other: it holds a loan, or ranks behind it in an order that preempts.

    A loan from within its parent counts as well, although the parent holds no more than its promise: the rule can be read both ways.
    """
    behind = after.gang(holder.row)
    if preempts and behind is not None and not math.isnan(behind.rank) and (taker.rank, taker.row) < (behind.rank, behind.row):
        return True
    return any(before.held(name) > before.promise(name) for name in before.apart(holder.queue, taker.queue))


def _should_have_shrunk(before: Picture, rest: Picture, gang: Gang, needs: Sequence[tuple[Gang, int]]) -> Iterator[str]:
    """A gang was stopped whole, although less of what its queue's gangs have grown to would have done."""
    grown = [one for one in rest.gangs if one.queue == gang.queue and one.devices and len(one.devices) > one.size and one.may_stop]
    own = len(gang.devices) > gang.size
    if not (grown or own) or not gang.devices <= rest.free:
        return
    kept = rest.with_gang(gang.row, frozenset(sorted(gang.devices)[: gang.size]) if own else gang.devices)
    for one in grown:
        less = frozenset(sorted(one.devices)[: one.size])
        kept = replace(kept.with_gang(one.row, less), free=kept.free | (one.devices - less))
    if kept.in_limits(gang.queue) and kept.can_all_start(needs):
        names = ", ".join(one.job for one in (*grown, *([gang] if own else [])))
        yield f"whole: {gang.job} was stopped, although {names} had grown and could have shrunk"
