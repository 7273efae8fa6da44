"""Between two steps a gang becomes another one: ranks that leave, ranks that stay, newcomers that get what the first rank has.

All ranks of the old gang come here at the same step. Ranks that stay and newcomers form a new gang, newcomers get the job's state
(and its model: by the functions that `keep` was given for that, else from a checkpoint that is made for them), and every rank makes the
next step. No staying rank ends, and no step is made twice.
"""

from __future__ import annotations

import json
import time

from gantline.train.record import check_version, resume
from gantline.train.saved import SavedTraining
from gantline.train.store import MODEL

_LOOK = 0.01  # seconds between two looks at what others have decided


def settle(job: SavedTraining) -> None:
    """Between two steps: agree with the other ranks on what is asked for, save, leave, and choose the next batch."""
    if job.trial.is_over(job.made):
        job.close()
        raise SystemExit(0)
    if job.orders.agreed[0]:  # a loop that saves for itself was asked to stop a step ago, and went on
        job.leave()
    while True:
        can_regroup = job.gang is not None and job.kept.loops
        due = job.board.due(job.member, decides=job.rank == 0, can_regroup=can_regroup)
        asked = job.orders.agree(job.asked_batch, due)
        if job.unconfirmed and job.rank == 0:
            job.board.say_switched(job.member.epoch)  # all ranks have taken part in a sum: the gang is complete
        job.unconfirmed = False
        stop, save = job.orders.agreed
        if stop or not job.orders.switch:
            break
        carry_out(job, job.orders.switch)
    job.choose_batch(asked)
    if not stop:
        job.heed_terms()
    if job.kept.loops and (stop or save):
        job.checkpoint()
    if job.kept.loops and stop:
        job.leave()


def carry_out(job: SavedTraining, epoch: int) -> None:
    """Go on under another epoch, as it was decided; a rank that leaves does not return."""
    decision = job.board.decision(epoch, job.member)
    assert decision is not None  # an epoch is announced only after its decision
    if not decision.regroups(job.member):
        after = decision.after(job.member)
        assert after is not None
        job.become(after)
        return
    assert job.gang is not None
    if decision.newcomers and job.kept.pack is None:
        job.checkpoint()
    member = decision.after(job.member)
    if member is None:
        _step_out(job, epoch)
        return
    job.become(member)
    job.gang.form(member)
    if decision.newcomers:
        _hand_over(job)
    for act in job.after_switch:
        act()


def _step_out(job: SavedTraining, epoch: int) -> None:
    """Leave the gang: this rank stays until the others go on without it."""
    assert job.gang is not None
    while not job.board.is_switched(epoch):
        time.sleep(_LOOK)
    job.gang.close()
    job.close()
    raise SystemExit(0)


def _hand_over(job: SavedTraining) -> None:
    assert job.gang is not None
    job.gang.spread(json.dumps(job.where_it_is()).encode())
    if job.kept.pack is not None:
        job.gang.spread(job.kept.pack() if job.rank == 0 else b"")


def enter(job: SavedTraining) -> None:
    """A newcomer is ready: it waits until the gang takes it in, and goes on with what the others have."""
    if not job.joins:
        return
    job.joins, job.is_restored = False, True
    assert job.gang is not None
    job.board.say_ready(job.member)
    while (decision := job.board.decision(job.member.epoch, job.member)) is None:
        if job.flags.stop:
            job.leave()
        time.sleep(_LOOK)
    if decision.refused:
        job.close()
        raise SystemExit(0)
    after = job.member.at(decision.port)
    job.become(after)
    job.gang.form(after)
    received = json.loads(job.gang.spread(b""))
    check_version(received, job.store)
    resume(job, job.hooks, received)
    if job.kept.unpack is not None:
        job.kept.unpack(job.gang.spread(b""))
    elif job.kept.load is not None:
        newest = job.store.newest()
        assert newest is not None  # it was made for us
        job.kept.load(newest / MODEL)
