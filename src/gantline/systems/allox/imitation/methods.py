"""IRFsim's baselines: each fills the pool at one event, with the slips of the original (docs/design/irfsim.md)."""

from __future__ import annotations

from collections.abc import Callable, Container
from operator import attrgetter
from typing import Generic, TypeVar

from gantline.core.errors import RefusedError
from gantline.systems.allox.imitation.irfsim import CPU, GPU, MEMORY, IRFsim, IrfsimTask, User

Pair = tuple[IrfsimTask, int]


def _least(task: IrfsimTask) -> float:
    return min(task.reported)


def _on_cpu(task: IrfsimTask) -> float:
    return task.reported[CPU]


def _on_gpu(task: IrfsimTask) -> float:
    return task.reported[GPU]


def poorest(sim: IRFsim, passed: Container[int] = (), beta: float = 0.0) -> User | None:
    """The user with queued tasks and the lowest share, the earlier name if equal. With beta, a GPU counts as so many cores."""
    best, lowest = None, float("inf")
    all_cores, all_gpus, all_memory = sim.capacity
    for user in sim.users:
        if not user.queue or id(user) in passed:
            continue
        cores, gpus, memory = user.used
        share = memory / all_memory
        if beta > 0.0:
            share = max(share, (cores + beta * gpus) / (all_cores + beta * all_gpus))
        else:
            share = max(share, cores / all_cores, gpus / all_gpus)
        if share / user.weight < lowest:
            best, lowest = user, share / user.weight
    return best


def drf_fifo(sim: IRFsim, whole: float) -> None:
    """GPU only, in order of arrival, a whole node's memory each; the first job that does not fit ends the event."""
    while (user := poorest(sim)) is not None:
        job = user.queue[0]
        job.memory = [whole, whole]
        if not sim.fits(job, GPU):
            return
        sim.start(job, GPU)


def drf(sim: IRFsim) -> None:
    """Each job on the device that it reports faster; all queues are sorted when the event begins."""
    for user in sim.users:
        user.queue.sort(key=_least)
    passed: set[int] = set()
    while (poor := poorest(sim, passed)) is not None:
        job = poor.first_job
        if job is None:
            passed.add(id(poor))
            continue
        device = CPU if job.reported[CPU] < job.reported[GPU] else GPU
        if not sim.fits(job, device):
            return
        sim.start(job, device)


def drf_extended(sim: IRFsim, beta: float) -> None:
    """GPU first; the fallback starts the CPU-shortest job for the time and with the demand of the GPU-shortest one.

    A queue is sorted only when its user's turn comes, also if it then holds nothing but samples.
    """
    passed: set[int] = set()
    while (user := poorest(sim, passed, beta)) is not None:
        user.queue.sort(key=_on_gpu)
        job = user.first_job
        if job is None:
            passed.add(id(user))
        elif sim.fits(job, GPU):
            sim.start(job, GPU)
        else:
            user.queue.sort(key=_on_cpu)
            if not sim.fits(job, CPU):
                return
            sim.start(user.jobs[0], CPU, like=job)


def equal_share(sim: IRFsim) -> None:
    """Two fills per user: by GPU time with no cores at all (the slip), then by CPU time with memory taken off twice."""
    cores, gpus, memory = (whole / len(sim.users) for whole in sim.capacity)
    for user in sim.users:
        user.queue.sort(key=_on_gpu)
        _fill(sim, user, (0.0, gpus, memory))
        user.queue.sort(key=_on_cpu)
        _fill(sim, user, (cores, gpus, memory - user.used[MEMORY]))


def _fill(sim: IRFsim, user: User, limit: tuple[float, float, float]) -> None:
    """Start the head, sample or job, on the first device within the user's limits, as long as the pool has room for that."""
    while user.queue:
        head, left = user.queue[0], [most - use for most, use in zip(limit, user.used)]
        device = next(
            (
                device
                for device in (GPU, CPU)
                if head.units[device] <= left[device] and left[1 - device] >= 0.0 and head.memory[device] <= left[MEMORY]
            ),
            None,
        )
        if device is None or not sim.fits(head, device):
            return
        sim.start(head, device)


def _pairs(sim: IRFsim) -> list[Pair]:
    """Pairs of job and device: poorest user first, jobs by arrival (not by when their samples ended), CPU before GPU."""
    for user in sim.users:
        user.queue.sort(key=attrgetter("arrival"))
    return [(job, device) for user in sorted(sim.users, key=attrgetter("score")) for job in user.jobs for device in (CPU, GPU)]


def _reported(pair: Pair) -> float:
    return pair[0].reported[pair[1]]


def shortest_pair(sim: IRFsim) -> None:
    """The shortest pair that fits, on a slow device too (SJF)."""
    started: set[IrfsimTask] = set()
    for job, device in sorted(_pairs(sim), key=_reported):
        if job not in started and sim.fits(job, device):
            sim.start(job, device)
            started.add(job)


def shortest_remaining_pair(sim: IRFsim) -> None:
    """Preempt every job, then as SJF: by total reported time, since preemption shrinks the true times only (SRPT)."""
    sim.preempt_jobs()
    shortest_pair(sim)


def allox_plus(sim: IRFsim, age: float) -> None:
    """One pair at a time, long-waiting jobs first, then by whole seconds of difference, which is not transitive, in Java's sort."""

    def before(one: Pair, other: Pair) -> bool:
        old, other_old = sim.now - one[0].arrival >= age, sim.now - other[0].arrival >= age
        return old if old != other_old else _reported(one) - _reported(other) <= -1.0

    while any(sim.fits(*pair) for pair in _pairs(sim)):
        pairs = _pairs(sim)
        try:
            java_sort(pairs, before)
        except ContradictoryError:
            raise RefusedError(
                "AlloXPlus' comparison contradicts itself, and the original would end here", where="--regime irfsim"
            ) from None
        sim.start(*next(pair for pair in pairs if sim.fits(*pair)))


# The comparisons of Java's list sort, in order, because AlloXPlus' comparison is not transitive.
#
# With a consistent comparison every stable sort gives the same list. AlloXPlus compares differences cut to whole seconds, so its
# order depends on which pairs the sort happens to compare: natural runs, extended to a least length by binary insertion, merged
# pairwise with galloping (T. Peters' list sort, 2002, as Java 7 and later use it for lists).

Item = TypeVar("Item")
Before = Callable[[Item, Item], bool]

SHORT = 32
GALLOP = 7


class ContradictoryError(Exception):
    """Java refuses a comparison that contradicts itself."""


def java_sort(items: list[Item], before: Before[Item]) -> None:
    """Leave the items in the order in which Java's ``Collections.sort`` would; ``before`` says which of two comes first."""
    least, odd = len(items), 0
    while least >= SHORT:
        odd |= least & 1
        least >>= 1
    least += odd
    merger = _Merger(items, before)
    low = 0
    while low < len(items):
        end = _natural_run(items, low, before)
        extended = max(end, min(low + least, len(items)))
        _insert(items, low, end, extended, before)
        merger.push(low, extended - low)
        low = extended
    merger.finish()


def _natural_run(items: list[Item], low: int, before: Before[Item]) -> int:
    """Where the run that starts at ``low`` ends; a strictly falling one is turned round."""
    end = low + 1
    if end == len(items):
        return end
    falling = before(items[end], items[low])
    end += 1
    while end < len(items) and before(items[end], items[end - 1]) == falling:
        end += 1
    if falling:
        items[low:end] = items[low:end][::-1]
    return end


def _insert(items: list[Item], low: int, sorted_to: int, end: int, before: Before[Item]) -> None:
    """Binary insertion of what follows a sorted stretch."""
    for at in range(sorted_to, end):
        left, right = low, at
        while left < right:
            middle = (left + right) >> 1
            if before(items[at], items[middle]):
                right = middle
            else:
                left = middle + 1
        items.insert(left, items.pop(at))


class _Merger(Generic[Item]):
    """A stack of neighbouring runs, merged so that their lengths stay balanced."""

    def __init__(self, items: list[Item], before: Before[Item]) -> None:
        self.items, self.before = items, before
        self.runs: list[tuple[int, int]] = []  # where each begins, and its length
        self.gallop_at = GALLOP

    def push(self, low: int, length: int) -> None:
        self.runs.append((low, length))
        while len(self.runs) > 1:
            size = [length for _, length in self.runs]
            n = len(size) - 2
            if (n > 0 and size[n - 1] <= size[n] + size[n + 1]) or (n > 1 and size[n - 2] <= size[n] + size[n - 1]):
                self._merge(n - 1 if size[n - 1] < size[n + 1] else n)
            elif size[n] <= size[n + 1]:
                self._merge(n)
            else:
                return

    def finish(self) -> None:
        while len(self.runs) > 1:
            n = len(self.runs) - 2
            self._merge(n - 1 if n > 0 and self.runs[n - 1][1] < self.runs[n + 1][1] else n)

    def _merge(self, i: int) -> None:
        """Merge the i-th run with the next: from the left if the first is the shorter one, else from the right."""
        (low, size), (middle, more) = self.runs[i : i + 2]
        self.runs[i : i + 2] = [(low, size + more)]
        items, end = self.items, middle + more
        low += self._leading(items[middle], items[low:middle], 0, False)
        if low == middle:
            return
        end -= self._leading(items[middle - 1], items[middle:end][::-1], 1, True)
        if end == middle:
            return
        backwards = middle - low > end - middle
        step = -1 if backwards else 1
        merged = self._merge_ends((items[low:middle][::step], items[middle:end][::step]), backwards)
        items[low:end] = merged[::step]

    def _merge_ends(self, runs: tuple[list[Item], list[Item]], backwards: bool) -> list[Item]:
        """Merge two runs, both turned round when the merge goes backwards.

        The ``far`` one is known to begin and the other one, the ``near``, to end the result.
        """
        near, far = (1, 0) if backwards else (0, 1)
        at, last = [0, 0], [len(run) for run in runs]
        last[near] -= 1
        merged = [runs[far][0]]
        at[far] = 1

        def take(which: int, count: int) -> bool:
            """Whether that leaves something to compare."""
            merged.extend(runs[which][at[which] : at[which] + count])
            at[which] += count
            return at[which] < last[which]

        more = at[far] < last[far] and last[near] > 0
        while more:
            streak = [0, 0]
            while more and max(streak) < self.gallop_at:
                which = far if self.before(runs[1][at[1]], runs[0][at[0]]) else near
                more = take(which, 1)
                streak[which], streak[1 - which] = streak[which] + 1, 0
            counts = [GALLOP, GALLOP]
            while more and max(counts) >= GALLOP:
                for which in (0, 1):
                    counts[which] = self._leading(runs[1 - which][at[1 - which]], runs[which][at[which] :], which, backwards)
                    if counts[which] and not take(which, counts[which]):
                        more = False
                        break
                    more = take(1 - which, 1)
                    if not more:
                        break
                else:
                    self.gallop_at -= 1
            if more:
                self.gallop_at = max(self.gallop_at, 0) + 2
        self.gallop_at = max(self.gallop_at, 1)
        if at[near] > last[near]:
            raise ContradictoryError
        return merged + runs[far][at[far] :] + runs[near][at[near] :]

    def _leading(self, key: Item, run: list[Item], which: int, backwards: bool) -> int:
        """How many items at the front of what is left of a run go before the key of the other: by doubling steps, then bisection."""

        def leads(at: int) -> bool:
            before_item = not self.before(run[at], key) if which else self.before(key, run[at])
            return before_item == backwards

        if not leads(0):
            return 0
        low, step = 0, 1
        while step < len(run) and leads(step):
            low, step = step, 2 * step + 1
        low, high = low + 1, min(step, len(run))
        while low < high:
            middle = low + ((high - low - backwards) >> 1)  # the one that Java looks at, whose lists are not turned round
            if leads(middle):
                low = middle + 1
            else:
                high = middle
        return low
