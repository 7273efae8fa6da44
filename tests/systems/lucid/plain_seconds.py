"""The rules of Lucid's simulator as a plain loop over seconds: slow, and with nothing to get wrong between two events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import fmean

from gantline.systems.lucid.profiles import LucidProfiles

BEGIN = 13_219_200


@dataclass
class PlainNode:
    name: int
    free: int = 8


@dataclass(eq=False)
class PlainJob:
    name: str
    vc: str
    submit: int
    gpus: int
    duration: int
    model: str = ""
    start: int = -1
    end: int = -1
    queue: int = 0
    preemptions: int = 0
    profiled: bool = False
    prof_wait: int = 0
    done: bool = False
    nodes: str = ""
    changes: list[str] = field(default_factory=list)
    left: float = 0.0
    rate: float = 1.0
    attained: int = 0
    waits_since: int = 0
    held: list[tuple[PlainNode, int]] = field(default_factory=list)
    exclusive: bool = True
    mate: PlainJob | None = None
    is_guest: bool = False
    priority: float = 0.0

    def result(self) -> tuple[object, ...]:
        return (self.start, self.end, self.queue, self.preemptions, self.profiled, self.prof_wait, self.done, self.nodes, self.changes)


def place(nodes: list[PlainNode], gpus: int) -> list[tuple[PlainNode, int]] | None:
    if sum(node.free for node in nodes) < gpus:
        return None
    if gpus <= 8:
        fits = [node for node in nodes if node.free >= gpus]
        found = [(min(fits, key=lambda node: node.free), gpus)] if fits else None
    else:
        order = sorted([node for node in nodes if node.free > 0], key=lambda node: -node.free)
        whole, rest = gpus // 8, gpus % 8
        if len(order) < whole + (rest > 0) or any(node.free != 8 for node in order[:whole]) or (rest and order[whole].free < rest):
            return None
        found = [(node, 8) for node in order[:whole]] + ([(order[whole], rest)] if rest else [])
    for node, count in found or []:
        node.free -= count
    return found


def free(job: PlainJob) -> None:
    job.nodes = " ".join(f"{node.name}x{count}" for node, count in job.held)
    for node, count in job.held:
        node.free += count
    job.held = []


def plain_in_order(jobs: list[PlainJob], count: int, sort: Callable[[list[PlainJob], int], None]) -> None:
    nodes, queue, running, now = [PlainNode(k) for k in range(count)], list[PlainJob](), list[PlainJob](), BEGIN
    while any(job.end < 0 for job in jobs):
        for job in [job for job in running if job.start + job.duration == now]:
            running.remove(job)
            free(job)
        queue += [job for job in jobs if job.submit == now]
        sort(queue, now)
        while queue and (held := place(nodes, queue[0].gpus)) is not None:
            job = queue.pop(0)
            job.held, job.start, job.end, job.queue = held, now, now + job.duration, now - job.submit
            running.append(job)
        now += 1
    for job in running:
        free(job)


def plain_by_quota(jobs: list[PlainJob], count: int, by_service: bool) -> None:
    nodes, queue, running, now = [PlainNode(k) for k in range(count)], list[PlainJob](), list[PlainJob](), BEGIN
    for job in jobs:
        job.left, job.waits_since = job.duration, job.submit
    while any(job.end < 0 for job in jobs):
        for job in list(running):
            if job.left <= 0:
                job.end = now
                running.remove(job)
                free(job)
            else:
                job.left -= 1
                job.attained += job.gpus
        queue += [job for job in jobs if job.submit == now]
        if not by_service or now % 60 == 0:
            if by_service:
                order = sorted(sorted([*running, *queue], key=lambda job: job.submit), key=lambda job: job.attained > 18_000)
            else:
                order = sorted([*queue, *running], key=lambda job: job.left)
            quota, starts, stops = 8 * count, list[PlainJob](), list[PlainJob]()
            for job in order:
                if job.gpus <= quota:
                    quota -= job.gpus
                    starts += [] if job in running else [job]
                elif job in running:
                    stops.append(job)
            for job in stops:
                running.remove(job)
                free(job)
                queue.append(job)
                job.preemptions += 1
                job.left += 60 if job.gpus > 8 else 40
                job.waits_since = now
            for job in starts:
                held = place(nodes, job.gpus)
                if held is not None:
                    queue.remove(job)
                    running.append(job)
                    job.held, job.start, job.queue = held, job.start if job.start >= 0 else now, job.queue + now - job.waits_since
        now += 1


def forecast(values: list[float], now: int) -> float | None:
    later = [value for step, value in enumerate(values) if BEGIN + 600 * step > now]
    return None if not later else fmean(later[:5] if len(later) >= 6 else later)


def plain_profiling(jobs: list[PlainJob], expected: list[float]) -> list[tuple[int, int]]:
    nodes, queue, running, now, loans = [PlainNode(0), PlainNode(1)], list[PlainJob](), list[PlainJob](), BEGIN, list[tuple[int, int]]()
    lent: PlainNode | None = None
    small = [job for job in jobs if job.gpus <= 8]
    ends: dict[PlainJob, int] = {}
    while len(ends) < len(small) or running:
        for job in [job for job in running if ends[job] == now]:
            running.remove(job)
            for node, count in job.held:
                node.free += count
            job.held = []
        queue += [job for job in small if job.submit == now]
        queue.sort(key=lambda job: job.gpus)
        while queue and (held := place(nodes, queue[0].gpus)) is not None:
            job = queue.pop(0)
            job.held, ends[job] = held, now + min(job.duration, 200)
            job.profiled, job.prof_wait = True, now - job.submit
            if job.duration <= 200:
                job.done, job.start, job.end, job.queue = True, now, ends[job], job.prof_wait
            running.append(job)
        if now % 10 == 0 and len(queue) > 10 and lent is None:
            lent = PlainNode(2)
            nodes.append(lent)
            loans.append((now, 1))
        elif now % 100 == 0 and len(queue) < 5 and lent is not None and lent.free == 8 and (forecast(expected, now) or 0.0) <= 40:
            nodes.remove(lent)
            lent = None
            loans.append((now, -1))
        now += 1
    return loans


def plain_pairing(
    jobs: list[PlainJob], count: int, loans: Iterable[tuple[int, int]], expected: list[float], profiles: LucidProfiles
) -> None:
    nodes, queue, running, now = [PlainNode(k) for k in range(count)], list[PlainJob](), list[PlainJob](), BEGIN
    todo, moves, lent_before, sharing = [job for job in jobs if not job.done], dict(loans), False, True
    config = profiles.configurations
    while any(job.end < 0 for job in todo):
        for job in list(running):
            if job.left > 0:
                job.left -= job.rate
                continue
            running.remove(job)
            job.end, mate, job.mate = now, job.mate, None
            job.nodes = " ".join(f"{node.name}x{gpus}" for node, gpus in job.held)
            if mate is None:
                free(job)
                continue
            mate.mate = None
            if job.is_guest:
                mate.rate, mate.exclusive = 1.0, True
                mate.changes.append(f"{now}:1:")
        for job in todo:
            if job.submit == now:
                job.left = job.duration
                queue.append(job)
        queue.sort(key=lambda job: job.priority)
        if now % 100 == 0:
            soon = forecast(expected, now)
            sharing = soon is None or soon > 2
        for job in list(queue):
            own = config[job.model]
            host = None
            for other in running if sharing and job.gpus <= 8 else []:
                theirs = config[other.model]
                fits = other.exclusive and other.gpus == job.gpus and theirs.memory < 24_576 - own.memory
                if fits and theirs.score + own.score <= 2 and job.priority <= 2 * other.priority:
                    host = other
                    break
            held = host.held if host is not None else place(nodes, job.gpus)
            if held is None:
                if sharing:
                    continue
                break
            queue.remove(job)
            running.append(job)
            job.held, job.start, job.queue = held, now, job.prof_wait + now - job.submit
            if host is not None:
                job.rate, host.rate = profiles.rates(own, config[host.model])
                job.exclusive = host.exclusive = False
                job.mate, host.mate, job.is_guest = host, job, True
                job.changes.append(f"{now}:{job.rate:g}:{host.name}")
                host.changes.append(f"{now}:{host.rate:g}:{job.name}")
        move = moves.get(now, 0)
        back = next((node for node in nodes if node.name == 9999), None)
        if move > 0 and (idle := [node for node in nodes if node.free == 8]):
            chosen = max(idle, key=lambda node: node.name)
            if chosen.name < 9999 and lent_before and back is not None:
                back.name = chosen.name
            nodes.remove(chosen)
            lent_before = True
        elif move < 0 and back is None:
            nodes.append(PlainNode(9999))
        now += 1
