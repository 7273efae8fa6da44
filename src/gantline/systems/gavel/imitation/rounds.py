"""The regime ``gavel``: rounds as Gavel's simulator counts them (OSDI 2020, section 5, and its artifact).

A job does whole steps, a round ends with its last task, a finish inside a round is exact but frees nothing before the
round ends, arrivals wait for it, and nothing costs time. Policies of the family answer shares; `turns` makes rounds of
them. With ``compat=gavel`` also the artifact's slips are kept:

* a task is credited the time since the end of the previous round, an idle gap included;
* a job that came after the last computation of shares may hold a place, but is not run in it;
* a gang with fewer steps left than workers fails, and after five failures in a row it is dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.gang import close_interval
from gantline.engine.policy_failures import Incident
from gantline.systems.gavel.imitation.checkpoint import resume_rounds, save_rounds
from gantline.systems.gavel.imitation.ideal import run_ideally
from gantline.systems.gavel.imitation.loop import ASK, DONE, ROOM, STALLED, run_rounds
from gantline.systems.gavel.imitation.run_state import GavelRunState
from gantline.systems.gavel.imitation.setup import set_up
from gantline.systems.gavel.imitation.tables import RoundCount, RoundTime, more_room
from gantline.systems.gavel.policies.allocation import Allocation, remarks
from gantline.systems.gavel.policies.instance import Instance
from gantline.traces.trace import Trace

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
        if keep.resume is not None:
            resume_rounds(self, keep.resume)
        saved = self.clock[RoundTime.NOW]
        while True:
            columns = log.columns
            code = run_rounds(setup.rules, self.clock, self.count, setup.jobs, setup.pairs, self.tasks, setup.devices, self.orders, columns)
            if code == ASK:
                self._renew()
                if keep.save is not None and self.clock[RoundTime.NOW] - saved >= keep.every:
                    save_rounds(self, keep.save)
                    saved = self.clock[RoundTime.NOW]
            elif code == ROOM:
                self._make_room()
            else:
                break
        if keep.save is not None:
            save_rounds(self, keep.save)
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
