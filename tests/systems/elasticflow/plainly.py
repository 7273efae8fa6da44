"""ElasticFlow's simulator said plainly, with dictionaries and lists: a second reading of its rules, to hold the quick one against."""

from __future__ import annotations

import math
from itertools import pairwise

from tests.systems.elasticflow.plain_jobs import Job, Map, canonical, value_at


class Plainly:
    """One run of `edf`, `edf-accessctrl`, `ef` or `ef-accessctrl`."""

    def __init__(self, jobs: list[Job], schedule: str, gpus: int, per_node: int, slot: float) -> None:
        self.jobs, self.schedule, self.gpus, self.per_node, self.slot = jobs, schedule, gpus, per_node, slot
        self.elastic, self.gated = schedule.startswith("ef"), schedule.endswith("accessctrl")
        self.calendar: dict[float, tuple[list[Job], list[Job]]] = {}
        for job in sorted(jobs, key=lambda one: one.submit):
            self.event(job.submit)[0].append(job)
        self.runnable: list[Job] = []
        self.pending: list[Job] = []
        self.running: list[Job] = []
        self.rounds, self.warm = 0, set[tuple[int, int]]()
        self.free: Map = {}

    def event(self, time: float) -> tuple[list[Job], list[Job]]:
        return self.calendar.setdefault(time, ([], []))

    def move(self, job: Job, old: float) -> None:
        if old == job.end:
            return
        if old in self.calendar:
            arrivals, ends = self.calendar[old]
            if job in ends:
                ends.remove(job)
            if not arrivals and not ends:
                del self.calendar[old]
        self.event(job.end)[1].append(job)

    def up(self, time: float, now: float) -> float:
        return time if math.isinf(time) else now + math.ceil((time - now) / self.slot) * self.slot

    def begin(self, job: Job, now: float) -> None:
        self.pending.remove(job)
        self.running.append(job)
        job.start = now

    def run(self) -> None:
        before = math.nan
        while self.calendar:
            now = min(self.calendar)
            passed = now - before if self.rounds else 0.0
            for job in self.runnable:
                if job.gpus:
                    self.progress(job, now, passed)
            arrivals, ends = self.calendar.pop(now)
            for job in ends:
                if self.schedule == "ef-accessctrl" and not job.gpus:
                    continue
                self.runnable.remove(job)
                (self.running if job in self.running else self.pending).remove(job)
                job.gpus, job.seen = 0, now
            (self.elastic_round if self.elastic else self.deadline_round)(now, arrivals)
            for job in self.jobs:
                if (job.history[-1][1] if job.history else 0) != job.gpus:
                    job.history.append((now, job.gpus))
            self.rounds += 1
            near = sorted(time for time in self.calendar if time - now <= self.slot)
            if near and len(self.calendar) > 1:
                events = [self.calendar.pop(time) for time in near]
                self.calendar[now + self.slot] = ([j for e in events for j in e[0]], [j for e in events for j in e[1]])
            before = now

    def progress(self, job: Job, now: float, passed: float) -> None:
        limit, speed = job.exact if self.elastic else job.end, job.speed[job.gpus]
        done = max(0.0, passed - max(0.0, now - limit) - job.lost) * speed
        if job.left <= done and job.end > now:
            old, job.end = job.end, now
            self.move(job, old)
            job.end = now - passed + math.ceil(job.left / speed)
        job.left -= done
        job.lost = 0.0

    # --- earliest deadline first ----------------------------------------------------------------------------------------
    def deadline_plan(self, order: list[Job], now: float) -> bool:
        order.sort(key=lambda job: job.deadline)
        free: Map = {now: self.gpus}
        for job in order:
            left, base, times, ended = job.left, job.level(self.gpus), sorted(free), False
            for time, until in pairwise(times):
                size = job.level(free[time])
                if time == now:
                    job.next_gpus = size
                if not size:
                    continue
                had, end = free[time], math.ceil(time + left / job.speed[size])
                free[time] -= size
                if end <= until:
                    if end not in free:
                        free[self.up(end, now)] = had
                    job.next_end, ended = end, True
                    break
                left -= (until - time) * job.speed[size]
            if not ended:
                last = times[-1]
                if last == now:
                    job.next_gpus = base
                job.next_end = math.ceil(last + left / job.speed[base])
                free[last], free[self.up(job.next_end, now)] = self.gpus - base, self.gpus
            free = canonical(free)
        return all(job.next_end <= job.deadline for job in order)

    def deadline_round(self, now: float, arrivals: list[Job]) -> None:
        groups = [[job] for job in arrivals] if self.gated else [arrivals] if arrivals else []
        accepted = False
        for group in groups:
            if not self.deadline_plan([*self.runnable, *group], now) and self.gated:
                group[0].rejected = True
                continue
            accepted = True
            self.runnable += group
            self.pending += group
            self.take_deadlines(now, True)
        if not accepted:
            self.deadline_plan(self.runnable, now)
            self.take_deadlines(now, not self.gated)
        if self.gated:
            self.charge(self.runnable)

    def take_deadlines(self, now: float, paused_too: bool) -> None:
        for job in self.runnable:
            job.gpus, old = job.next_gpus, job.end
            if job.gpus or paused_too:
                job.end = job.next_end
            if job in self.running and (job.gpus or paused_too):
                self.move(job, old)
            elif job in self.pending and job.gpus:
                self.begin(job, now)
                self.move(job, math.nan)

    # --- ElasticFlow ----------------------------------------------------------------------------------------------------
    def plan(self, job: Job, free: Map, now: float, forced: int | None = None) -> tuple[Map, float, float, Map]:
        """Plan, end, exact end, and the free map after it."""
        left, due, then = job.left, self.up(job.deadline, now), dict(free)
        if now <= due < math.inf and due not in then:
            then[due] = value_at(then, due)
        begin, found = now, {now: 0}
        if forced is not None:
            until = min((time for time in free if time > now), default=due)
            exact = math.ceil(now + left / job.speed[forced])
            end = self.up(exact, now)
            then[now] -= forced
            if end <= until and exact <= job.deadline:
                then.setdefault(end, free[now])
                return {now: forced}, end, exact, canonical(then)
            left -= ((job.deadline if until == due else until) - now) * job.speed[forced]
            begin, found = until, {now: forced, until: 0}
        times = [*sorted(then), math.inf]
        inside = [(k, (job.deadline if n == due else n) - k) for k, n in pairwise(times) if begin <= k < due]
        below = size = 0
        for size in [size for size in sorted(job.speed) if size <= min(self.gpus, job.top)]:
            done, first = 0.0, math.nan
            for k, width in reversed(inside):
                if a := min(size, job.level(then[k])):
                    done += width * job.speed[a]
                    if done >= left:
                        first = k
                        break
            if math.isnan(first):
                below = size
                continue
            breakpoints = sorted(then)
            for k, width in inside:
                a = min(size if k >= first else below, job.level(then[k]))
                found[k] = a
                then[k] -= a
                if a and width * job.speed[a] >= left:
                    seconds = math.ceil(left / job.speed[a])
                    exact, end = k + seconds, k + math.ceil(seconds / self.slot) * self.slot
                    break
                left -= width * job.speed[a] if a else 0.0
            found |= {later: 0 for later in breakpoints if k < later < due}
            if end not in free:
                then[end] = free[max(time for time in free if time < end)]
            return canonical(found), end, exact, canonical(then)
        for k, width in inside:
            a = found[k] = min(size, job.level(then[k]))
            then[k] -= a
            left -= width * job.speed[a] if a else 0.0
        later = [time for time in sorted(then) if time >= max(due, begin)]
        for time, until in pairwise(later):
            a = found[time] = job.level(then[time])
            had = then[time]
            then[time] -= a
            if a and (until - time) * job.speed[a] >= left:
                exact = math.ceil(time + left / job.speed[a])
                then.setdefault(self.up(exact, now), had)
                return canonical(found), self.up(exact, now), exact, canonical(then)
            left -= (until - time) * job.speed[a] if a else 0.0
        last, a = later[-1], job.level(self.gpus) if forced is None else forced
        found[last], exact = a, math.ceil(later[-1] + left / job.speed[a])
        then[last], then[self.up(exact, now)] = self.gpus - a, self.gpus
        return canonical(found), self.up(exact, now), exact, canonical(then)

    def plan_all(self, order: list[Job], now: float) -> bool:
        order.sort(key=lambda job: job.deadline)
        self.free = {now: self.gpus}
        planned: dict[Job, tuple[Map, float, float]] = {}
        for job in order:
            *planned[job], self.free = self.plan(job, self.free, now)  # type: ignore[misc]
        self.planned = planned
        return all(exact <= job.deadline for job, (_, _, exact) in planned.items())

    def elastic_round(self, now: float, arrivals: list[Job]) -> None:
        entering = arrivals
        if self.gated and arrivals and not self.plan_all([*self.runnable, *arrivals], now):
            entering = [job for job in arrivals if math.isinf(job.deadline)]
            for job in arrivals:
                job.rejected = job not in entering
        self.runnable += entering
        self.pending += entering
        self.plan_all(self.runnable, now)
        for job in self.runnable:
            old = job.end
            job.plan, job.end, job.exact = self.planned[job]
            job.gpus = job.plan[now]
            self.move(job, old)
        for job in [job for job in self.pending if job.gpus]:
            self.begin(job, now)
        if not self.gated:
            for job in self.pending:
                self.event(min(time for time, size in job.plan.items() if size))
        self.share_spare(now)
        if self.gated:
            self.runnable.sort(key=lambda job: -job.gpus)
            order = self.runnable
            first = min((time for job in self.runnable for time in job.plan if time > now), default=math.inf)
            if first < min(self.calendar, default=math.inf):
                self.event(first)
        else:
            order = sorted(self.running, key=lambda job: -min(job.gpus, self.per_node))
            for job in self.running:
                if later := [time for time in job.plan if time > now]:
                    self.event(min(later))
        self.charge(order)

    def share_spare(self, now: float) -> None:
        added = dict.fromkeys(self.runnable, -math.inf)

        def grown(job: Job) -> tuple[Map, float, float, Map]:
            times = {*self.free, *job.plan, job.end}
            given = {time: value_at(self.free, time) + (value_at(job.plan, time) if time < job.end else 0) for time in times}
            return self.plan(job, canonical(given), now, job.above())

        def held(plan: Map, end: float) -> float:
            ends = [*sorted(plan)[1:], end]
            return sum(plan[time] * (until - time) for time, until in zip(sorted(plan), ends) if plan[time])

        def weigh() -> None:
            for job in self.runnable:
                if (more := job.above()) is None:
                    continue
                if more - job.gpus > self.free[now]:
                    added[job] = -math.inf
                elif not job.gpus:
                    added[job] = math.inf
                else:
                    plan, end, _, _ = grown(job)
                    added[job] = (held(plan, end) - held(job.plan, job.end)) / (more - job.gpus)
            self.runnable.sort(key=lambda job: -added[job])

        if self.free[now]:
            weigh()
        while self.free[now]:
            step = next((job for job in self.runnable if (more := job.above()) and more - job.gpus <= self.free[now]), None)
            if step is None:
                return
            old, size = step.end, step.above()
            step.plan, step.end, step.exact, self.free = grown(step)
            step.gpus = size or 0
            self.move(step, old)
            if step in self.pending:
                self.begin(step, now)
            weigh()

    def charge(self, order: list[Job]) -> None:
        again = self.rounds > 0 and self.rounds % self.slot == 0
        base, more = (7.0, 47.0) if self.gpus >= 256 else (2.0, 27.0)
        rank = 0
        for job in [job for job in order if job.gpus]:
            place, rank = (rank, job.gpus), rank + job.gpus
            job.lost = base if place in self.warm else base + 2.0 * (math.log2(job.gpus) + 1.0) + (more if again else 0.0)
            self.warm.add(place)
            old, job.end = job.end, job.end + job.lost
            self.move(job, old)
        if again:
            self.warm.clear()
