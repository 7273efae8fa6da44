"""The regime ``gavel``: rounds as Gavel's simulator counts them (OSDI 2020, section 5, and its artifact).

A job does whole steps, a round ends with its last task, a finish inside a round is exact but frees nothing before the
round ends, arrivals wait for it, and nothing costs time. Policies of the family answer shares; `turns` makes rounds of
them. With ``compat=gavel`` also the artifact's slips are kept:

* a task is credited the time since the end of the previous round, an idle gap included;
* a job that came after the last computation of shares may hold a place, but is not run in it;
* a gang with fewer steps left than workers fails, and after five failures in a row it is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Device, Job
from gantline.core.errors import RefusedError
from gantline.core.phases import Phase
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.gang import close_interval, open_interval
from gantline.engine.imitations.registry import Scope
from gantline.engine.log import Log
from gantline.engine.policy_failures import Incident
from gantline.engine.time_shares import Fluid
from gantline.systems.gavel.imitation.loop import ASK, DONE, ROOM, STALLED, run_rounds
from gantline.systems.gavel.imitation.setup import GavelRunState, GavelSetup, resume_rounds, save_rounds, set_up
from gantline.systems.gavel.imitation.tables import RoundCount, RoundTime, more_room
from gantline.systems.gavel.policies.allocation import Allocation, devices_used, effective_throughput, remarks
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.policy import GavelPolicy
from gantline.traces.trace import Trace

# What Gavel's simulator reads: it asks the policy itself for shares of time, so any policy of the family runs.


class GavelScope(Scope):
    """Shares come from the policy; rounds are the simulator's own, so `decide` and the length of a turn on events are not read."""

    def check_class(self, policy: Policy, where: str) -> None:
        name = policy.name or type(policy).__name__
        if not isinstance(policy, GavelPolicy):
            raise RefusedError(f"policy '{name}' gives no shares of time, which regime 'gavel' makes rounds of", where=where,
                               fix="use a policy gavel.NAME, or another --regime")  # fmt: skip
        if type(policy).decide is not GavelPolicy.decide:
            what = f"decide() of class '{type(policy).__name__}' would not be called: {self.simulator} asks for shares()"
            raise RefusedError(what, where=where, fix="write shares(), or use another --regime")

    def reads(self, policy: Policy) -> tuple[str, ...]:
        return tuple(item.name for item in fields(policy) if item.name not in _not_read(policy))


def _not_read(policy: Policy) -> tuple[str, ...]:
    """Ideal shares are computed at every arrival and finish, and divided without rounds."""
    return ("turn", "spacing") if isinstance(policy, GavelPolicy) and policy.ideal else ("turn",)


SCOPE = GavelScope(
    "Gavel's simulator",
    frozenset({"round", "until", "track", "throughputs", "across_nodes", "checkpoint", "checkpoint_every", "resume"}),
)


# Gavel's ideal mode: no rounds, every job gets exactly its shares of time (OSDI 2020, section 7.4, Figure 13).
#
# Shares are computed at every arrival and every finish. The artifact notices a finish at the next arrival only; here it
# is seen when it happens.

Ask = Callable[[Ints, float], tuple[Instance, Allocation]]


def run_ideally(setup: GavelSetup, ask: Ask, until: float, log: Log, accounts: Fluid) -> tuple[float, float]:
    """Run to the end of the tracked jobs; the time by then and the device-seconds used. `accounts`: what a log of devices cannot show."""
    jobs, F, I = setup.jobs, setup.jobs.F, setup.jobs.I
    arrival, following, now, used = F[Job.ARRIVAL], 0, 0.0, 0.0
    active: list[int] = []
    tracked = slice(setup.rules.low, setup.rules.high)
    while np.isnan(F[Job.FINISH, tracked]).any() and now < until:
        while following < len(arrival) and arrival[following] <= now:
            active.append(following)
            F[Job.ADMITTED, following], I[Job.PHASE, following] = now, Phase.PENDING
            following += 1
        coming = float(arrival[following]) if following < len(arrival) else np.inf
        if not active:
            now = coming
            continue
        rows = np.array(active, dtype=np.int64)
        instance, allocation = ask(rows, now)
        speed = effective_throughput(instance, allocation)
        left = jobs.steps[rows] - jobs.done[rows]
        ends = now + np.where(speed > 0, left / np.where(speed > 0, speed, 1.0), np.inf)
        end = min(float(ends.min()), coming, until)
        if not np.isfinite(end):
            break
        runs = speed > 0
        F[Job.FIRST_START, rows[runs]] = np.where(np.isnan(F[Job.FIRST_START, rows[runs]]), now, F[Job.FIRST_START, rows[runs]])
        F[Job.MARK, rows[runs]] = F[Job.FIRST_START, rows[runs]]
        jobs.done[rows] += speed * (end - now)
        _note_who_runs(setup, rows, runs, now, log)
        given = (instance.scale * allocation.share.sum(axis=1)) * (end - now)
        F[Job.SERVICE, rows[runs]] += end - now
        F[Job.GPUTIME, rows] += given
        for row, seconds in zip(active, given.tolist(), strict=True):
            accounts.held[row] = accounts.held.get(row, 0.0) + seconds
        used += float(devices_used(instance, allocation).sum()) * (end - now)
        for seconds in (setup.devices.held, setup.devices.paid):
            seconds[:] += devices_used(instance, allocation) * (end - now)
        done = rows[ends <= end]
        F[Job.FINISH, done], I[Job.PHASE, done] = end, Phase.COMPLETED
        jobs.done[done] = jobs.steps[done]
        for row in done.tolist():
            close_interval(I, row, end, int(Reason.FINISHED), log.columns)
        finished = set(done.tolist())
        active = [row for row in active if row not in finished]
        now = end
    accounts.device_seconds = used
    return now, used


def _note_who_runs(setup: GavelSetup, rows: Ints, runs: Bools, now: float, log: Log) -> None:
    """An interval is the time in which a job has a share, of whatever type; it has no devices."""
    I, D = setup.jobs.I, np.zeros((len(Device), 0), dtype=np.int64)
    log.reserve(len(rows), 0)
    for row in rows[runs & (I[Job.INTERVAL, rows] < 0)].tolist():
        open_interval(I, D, row, now, log.columns)
    for row in rows[~runs].tolist():
        close_interval(I, row, now, int(Reason.PREEMPTED), log.columns)


_ROOM = 65536  # intervals of the log made room for at a time


def run_in_rounds(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run a simulation to its end; what this regime counts beyond the usual comes back."""
    return GavelRun(simulation, set_up(simulation)).run()


class GavelRun(GavelRunState):
    """One run: the loop, and shares whenever it asks for them."""

    def run(self) -> dict[str, Any]:
        state, setup = self.simulation.state, self.setup
        devices = len(setup.devices.taken)
        if setup.policy.ideal:
            accounts = self.simulation.engine.grants.fluid
            state.now, used = run_ideally(setup, self._ask, self.simulation.until, state.log, accounts)
        else:
            self._loop()
            state.now, used = float(self.clock[RoundTime.NOW]), float(setup.devices.held.sum())
        self._settle()
        count = self.count
        extendable = int(count[RoundCount.EXTENDABLE])
        return {
            "rounds": int(count[RoundCount.ROUNDS]),
            "gpu_rounds": int(count[RoundCount.GPU_ROUNDS]),
            "lease_extensions": int(count[RoundCount.EXTENDED]),
            "lease_extension_opportunities": extendable,
            "lease_extension_percent": 100.0 * int(count[RoundCount.EXTENDED]) / extendable if extendable else None,
            "allocation_calls": self.calls,
            "most_active_jobs": int(count[RoundCount.MOST]),
            "credited_utilization": used / (state.now * devices) if state.now > 0 else None,
            "device_seconds": dict(zip(setup.types, map(float, setup.devices.held))),
            "paid_device_seconds": self._paid(),
            "slo_violations": self._late_jobs(),
        }

    def _paid(self) -> dict[str, float]:
        """Device-seconds of every type that a job pays; with the artifact both members of a pair pay."""
        devices = self.setup.devices
        return dict(zip(self.setup.types, map(float, devices.paid if self.setup.rules.artifact else devices.held)))

    def _late_jobs(self) -> int:
        """Tracked jobs past their deadline; the artifact compares the time a job took with an instant."""
        F, rules = self.setup.jobs.F, self.setup.rules
        took = F[Job.FINISH] - F[Job.ARRIVAL] if rules.artifact else F[Job.FINISH]
        return int((took > F[Job.DEADLINE])[rules.low : rules.high].sum())

    def _loop(self) -> None:
        setup, log, keep = self.setup, self.simulation.state.log, self.simulation.checkpoints
        if keep.resume:
            resume_rounds(self, Path(keep.resume))
        saved = self.clock[RoundTime.NOW]
        while True:
            columns = log.columns
            code = run_rounds(setup.rules, self.clock, self.count, setup.jobs, setup.pairs, self.tasks, setup.devices, self.orders, columns)
            if code == ASK:
                self._renew()
                if keep.save and self.clock[RoundTime.NOW] - saved >= keep.every:
                    save_rounds(self, Path(keep.save))
                    saved = self.clock[RoundTime.NOW]
            elif code == ROOM:
                self._make_room()
            else:
                break
        if keep.save:
            save_rounds(self, Path(keep.save))
        if code == DONE and self._due():
            self.calls += 1  # the artifact asks once more when the last job has gone
        elif code == STALLED:
            waiting = int(self.count[RoundCount.ACTIVE])
            what = f"{waiting} jobs wait, but nothing runs, nothing will arrive and shares would not change: given up"
            self.simulation.engine.incidents.append(Incident(float(self.clock[RoundTime.NOW]), self.calls, what))

    def _due(self) -> bool:
        """Whether shares would be computed now."""
        clock = self.clock
        stale = self.count[RoundCount.STALE] == 1
        return bool(
            stale and (clock[RoundTime.NOW] - clock[RoundTime.LAST_RESET] >= clock[RoundTime.SPACING] or clock[RoundTime.LAST_RESET] == 0.0)
        )

    def _renew(self) -> None:
        """New shares; what was owed under the old ones is carried along as deficits."""
        tasks, n, clock = self.tasks, int(self.count[RoundCount.TASKS]), self.clock
        half = clock[RoundTime.LENGTH] / 2.0
        elapsed = clock[RoundTime.NOW] - clock[RoundTime.LAST_RESET]
        share, time = tasks.share[:n], tasks.time[:n]
        tasks.deficit[:n] += share * elapsed - (time - half)
        time[:] = half
        self.setup.devices.total[:] = n * half
        clock[RoundTime.LAST_RESET] = clock[RoundTime.NOW]
        self.count[RoundCount.STALE] = 0
        alone = tasks.second[:n] < 0
        _, allocation = self._ask(tasks.first[:n][alone], float(clock[RoundTime.NOW]))
        share[alone] = allocation.share
        paired = np.flatnonzero(~alone)
        if len(paired):
            share[paired[np.lexsort((tasks.second[paired], tasks.first[paired]))]] = allocation.paired
        tasks.known[:n] = 1

    def _ask(self, rows: Ints, now: float) -> tuple[Instance, Allocation]:
        """The policy's shares for these jobs."""
        simulation = self.simulation
        self.calls += 1
        simulation.engine.decisions += 1
        instance = self.setup.instance(rows, now)
        allocation, self.memory = self.setup.policy.shares(instance, self.memory, simulation.state.seed)
        late = tuple(simulation.state.tables.ids[int(str(row))] for row in allocation.missing)
        simulation.engine.notices += [Incident(now, self.calls, said) for said in remarks(allocation.status, late, self.late)]
        self.late = late
        if simulation.on_progress is not None:
            simulation.on_progress(now, int(self.count[RoundCount.NEXT]), len(rows))
        return instance, allocation

    def _make_room(self) -> None:
        log = self.simulation.state.log
        log.reserve(_ROOM, 2 * _ROOM)
        if self.count[RoundCount.TASKS] + self.count[RoundCount.ACTIVE] + 1 > len(self.tasks.first):
            self.tasks = more_room(self.tasks)
        if self.count[RoundCount.ORDER] >= len(self.orders):
            self.orders = self.draw_orders()
            self.count[RoundCount.ORDER] = 0

    def _settle(self) -> None:
        """Work done, in the engine's unit, and open intervals."""
        jobs, state = self.setup.jobs, self.simulation.state
        F, I = jobs.F, jobs.I
        F[Job.DONE] = F[Job.WORK] * np.minimum(jobs.done / np.where(jobs.steps > 0, jobs.steps, 1.0), 1.0)
        arrived = np.flatnonzero(~np.isnan(F[Job.ADMITTED]) & np.isnan(F[Job.FINISH]))
        state.lists.active[: len(arrived)] = arrived
        for row in arrived[I[Job.INTERVAL, arrived] >= 0]:
            close_interval(I, int(row), state.now, int(Reason.END), state.log.columns)
