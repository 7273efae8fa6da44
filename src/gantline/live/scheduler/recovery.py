"""How a scheduler begins: from nothing, or from the newest checkpoint and the journal behind it; on the devices that there are now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gantline.core.inputs import NodeEvent, Use
from gantline.core.windows import AdvanceWindow
from gantline.engine.drivers.journal import Journal
from gantline.engine.executor import Can
from gantline.engine.policy_failures import Incident
from gantline.live.runners.runner import Runner
from gantline.live.scheduler.endings import NodeWatch
from gantline.live.scheduler.job_registry import Job, JobRegistry
from gantline.live.scheduler.loop_thread import WallClock
from gantline.live.scheduler.replay import Past
from gantline.live.scheduler.setup import Saved, Setup, checkpoint_of, make_loop
from gantline.live.store.records import Entry, Store
from gantline.live.wall_time import Live

_LOG = logging.getLogger("gantline.live")


@dataclass
class Begun:
    """A loop that has come up to now, with what is known beside it."""

    setup: Setup
    born: float
    clock: WallClock
    loop: Live
    registry: JobRegistry
    archived: Mapping[str, Any]  # what jobs that have left for the archive add up to
    windows: Mapping[str, AdvanceWindow]  # as the checkpoint has them
    nodes: NodeWatch
    lines: int = 0  # of the journal since the checkpoint
    set_aside: list[str] = field(default_factory=list)  # parts of the past that could not be used


def begin(store: Store, runner: Runner, setup: Setup, anew: Mapping[str, Any], wall: Callable[[], float]) -> Begun:
    """Continue from the store, or begin; `anew` are settings that replace those of the earlier service."""
    able = runner.abilities
    anew = {**anew, "abilities": tuple(sorted(ability.value for ability in able)), "collocates": Can.COLLOCATE in able}
    saved = store.checkpoint()
    if saved is None:
        setup, born, past = replace(setup, **anew), wall(), Past()
        clock = WallClock(born, wall=wall)
        loop = make_loop(setup, None, runner.cluster, runner, clock)
        store.append([Entry("checkpoint", checkpoint_of(loop, setup, born))])
    else:
        after, value = saved
        setup, born, past = Setup.from_json(value["setup"]), float(value["born"]), Past.read(store.journal(after))
        clock = WallClock(born, max([float(value["snapshot"]["now"]), past.until, *(at for at, _ in past.script)]), wall=wall)
        loop = make_loop(setup, value, runner.cluster, runner, clock)
    archived = store.archived()
    registry = JobRegistry(store.jobs(), int(archived.get("newest", 0)))
    nodes = NodeWatch(set(setup.absent), set(setup.drained))
    begun = Begun(setup, born, clock, loop, registry, archived, dict(loop.state.tables.windows), nodes, past.lines)
    _set_abilities(begun)
    _live_through(begun, store, past)
    for _, entered in past.script:
        if isinstance(entered, Use):
            begun.setup = replace(begun.setup, policy=entered.policy, settings=dict(entered.settings))
        elif isinstance(entered, NodeEvent):
            nodes.see(entered)
    begun.setup = replace(begun.setup, absent=tuple(sorted(nodes.absent)), drained=tuple(sorted(nodes.drained)))
    if replace(begun.setup, **anew) != begun.setup:
        _set_up_anew(begun, store, runner, anew)
    _skip_what_was_missed(begun, store)
    return begun


def _live_through(begun: Begun, store: Store, past: Past) -> None:
    """Fold the past, and complete its record: a decision that was made or due when the last service ended is written down now."""
    loop, made = begun.loop, Journal(whole=False)
    loop.engine.recorder = made.decided
    past.fold(loop)
    loop.engine.recorder = None
    known = [(line["decision"], line["now"], line["hash"]) for line in past.decisions]
    again = [(line["decision"], line["now"], line["hash"]) for line in made.lines]
    entries = [Entry("aside", {"number": number, "why": why}) for number, why in past.aside.items()]
    if again[: len(known)] == known:
        entries += [Entry("journal", line) for line in made.lines[len(known) :]]
    else:  # the policy was changed since, or a line was set aside: what follows has a checkpoint of its own to be replayed from
        place = next((k for k, (one, other) in enumerate(zip(known, again)) if one != other), min(len(known), len(again)))
        number = known[place][0] if place < len(known) else again[place][0]
        what = f"the past gives another decision {number} than was recorded (was the policy changed?): it goes on from here"
        loop.engine.incidents.append(Incident(loop.state.now, loop.state.decision, what))
        loop.state.decision = max(loop.state.decision, *(line[0] for line in known))
        entries.append(Entry("checkpoint", {**checkpoint_of(loop, begun.setup, begun.born), "breaks": True}))
    if entries:
        store.append(entries)
    for number, why in past.aside.items():
        begun.set_aside.append(f"line {number} of the journal is set aside: it {why}")
        _LOG.warning(begun.set_aside[-1])


def begin_life(begun: Begun, store: Store, runner: Runner, life: NewLife) -> None:
    """Continue where nothing that an earlier life of the store has started counts; from a checkpoint of its own, written with the life.

    The registry must know what has become of the jobs by now: rows of those that have ended are not in a checkpoint.
    """
    life.move_jobs(begun.registry)
    begun.registry.newest = max(begun.registry.newest, life.newest)
    over = begun.loop.reconciler.reality.over
    for row in range(len(begun.loop.state.tables.ids)):
        over.setdefault(row, -1)  # so that all rows have one, and it moves with the other epochs
    saved = {**life.move(checkpoint_of(begun.loop, begun.setup, begun.born)), "breaks": True}
    begun.loop = make_loop(begun.setup, saved, runner.cluster, runner, begun.clock)
    _set_abilities(begun)
    jobs = [Entry("job", {"id": job.id, "ended_epoch": job.ended_epoch}) for job in begun.registry]
    event = Entry("event", {"time": begun.clock.now(), "event": "new-life", "why": str(life)})
    store.append([*jobs, event, Entry("checkpoint", saved), Entry("life", {"generation": life.generation, "newest": life.newest})])
    begun.archived, begun.lines = store.archived(), 0
    begun.set_aside.append(str(life))
    _LOG.warning(begun.set_aside[-1])


def _set_abilities(begun: Begun) -> None:
    t, registry, setup = begun.loop.state.tables, begun.registry, begun.setup
    begun.loop.inbox.able = lambda row: setup.able(registry[t.ids[row]].launch, t.cluster)


def _set_up_anew(begun: Begun, store: Store, runner: Runner, anew: Mapping[str, Any]) -> None:
    """Continue under other rules: a checkpoint of its own lets either side of the change be replayed."""
    begun.setup = replace(begun.setup, **anew)
    saved = checkpoint_of(begun.loop, begun.setup, begun.born)
    begun.loop = make_loop(begun.setup, saved, runner.cluster, runner, begun.clock)
    store.append([Entry("checkpoint", {**saved, "breaks": True})])
    begun.lines = 0
    _set_abilities(begun)
    _live_through(begun, store, Past())


def _skip_what_was_missed(begun: Begun, store: Store) -> None:
    """Appointments that passed while no service ran are decided once, now; a checkpoint lets either side of the gap be replayed."""
    now = begun.clock.now()
    if begun.loop.has_missed(now):
        begun.loop.skip_to(now)
        store.append([Entry("checkpoint", {**checkpoint_of(begun.loop, begun.setup, begun.born), "breaks": True})])
        begun.lines = 0


def is_long_over(loop: Live, registry: JobRegistry, job: str) -> bool:
    """Whether nothing of a job can still run: it has ended and is not on its way out, or is in the archive."""
    if job not in registry:
        number = job.partition("_")[0]
        return number.isdigit() and int(number) <= registry.newest
    row = loop.engine.inputs.rows.of(job)
    return registry[job].ended and (row is None or row not in loop.reconciler.live)


# Another life of a store that is older than what its jobs have left: a backup, a database of an earlier time, a lost
# write-ahead log.
#
# Ids of jobs and epochs of incarnations that it would give out next may have been given out before. So ids go on
# behind the newest that is known, and every epoch in the checkpoint moves behind those of all folders: to runners,
# whatever an earlier life has started is then an older incarnation of its job, which they end, and whose end counts
# for nothing.


@dataclass(frozen=True)
class NewLife:
    """What it begins with."""

    generation: str
    newest: int  # the highest number of a job that has been given out
    epochs: int  # the highest epoch of an incarnation
    why: str  # it is known to be one
    known: int  # the highest number of a job in the store

    def __str__(self) -> str:
        lost = f"; the store knows nothing of jobs {self.known + 1} to {self.newest}" if self.newest > self.known else ""
        return (
            f"another life of the store begins: {self.why}{lost}. Jobs that ran when it was written start again from what they have "
            "saved, processes of the earlier life are stopped, and new jobs get higher numbers"
        )

    def move(self, saved: Saved) -> Saved:
        """A checkpoint with later epochs."""
        by = self.epochs + 1
        snapshot = saved["snapshot"]
        jobs = [{**job, "epoch": job.get("epoch", 0) + by} for job in snapshot["jobs"]]
        live = [{**one, "epoch": one["epoch"] + by, "onto": one["onto"] + by if one["onto"] >= 0 else -1} for one in saved["live"]]
        return {
            **saved,
            "snapshot": {**snapshot, "jobs": jobs},
            "live": live,
            "over": {row: epoch + by for row, epoch in saved["over"].items()},
            "saves": {row: [epoch + by, first] for row, (epoch, first) in saved["saves"].items()},
            "ended": [{**one, "epoch": one["epoch"] + by} for one in saved["ended"]],
        }

    def move_jobs(self, jobs: Iterable[Job]) -> None:
        """What is known of jobs, likewise."""
        for job in jobs:
            job.ended_epoch += self.epochs + 1
