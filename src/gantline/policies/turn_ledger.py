"""The account behind turns: what every task should have, has received and is owed; a plain value between decisions.

A task is a job, or two jobs that share devices. Tasks stand in the order of admission, the pairs of a job behind it.
See `turns` for how the account decides which is next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints

NO_TURN = -1


@dataclass(frozen=True)
class Ledger:
    """Tables are [task, type]. ``first`` and ``second`` (-1: alone) are positions in ``jobs``."""

    jobs: tuple[str, ...]
    first: Ints
    second: Ints
    share: Floats
    time: Floats  # received since the shares were computed, and half a turn
    deficit: Floats
    known: Ints  # whether the shares were computed with it
    turn: Ints  # type of the turn it was given last
    service: Floats  # [job] seconds it had run by then
    total: Floats  # [type] time received by all
    computed: float = -np.inf  # when the shares were
    stale: bool = True  # jobs or devices have changed since
    ends: float = -np.inf  # end of the present turns, where decisions follow events

    @classmethod
    def empty(cls, types: int) -> Ledger:
        none, table = np.zeros(0, dtype=np.int64), np.zeros((0, types))
        return cls((), none, none, table, table, table, none, none, np.zeros(0), np.zeros(types))

    # --- memory -----------------------------------------------------------------------------------------------------
    def plain(self) -> dict[str, Any]:
        """The account as a value that can be stored."""
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "jobs": list(self.jobs)}

    @classmethod
    def recall(cls, stored: Any, types: int) -> Ledger:
        """The account that was stored; a new one if there is none, or if the types have changed."""
        if stored is None or stored["share"].shape[1] != types:
            return cls.empty(types)
        return cls(**{**stored, "jobs": tuple(stored["jobs"])})

    # --- what happens -----------------------------------------------------------------------------------------------
    def credited(self, jobs: Sequence[str], service: Floats) -> Ledger:
        """With the time that every task has run since the last decision."""
        place = {job: i for i, job in enumerate(jobs)}
        ran = np.array([service[place[job]] - had if job in place else 0.0 for job, had in zip(self.jobs, self.service)])
        on = np.flatnonzero(self.turn >= 0)
        if not len(on):
            return self
        time, total = self.time.copy(), self.total.copy()
        one, two = self.first[on], self.second[on]
        seconds = np.maximum(np.maximum(ran[one], np.where(two >= 0, ran[two], 0.0)), 0.0)
        np.add.at(time, (on, self.turn[on]), seconds)
        np.add.at(total, self.turn[on], seconds)
        return replace(self, time=time, total=total)

    def updated(self, jobs: Sequence[str], scale: Ints, service: Floats, pairs: bool, length: float) -> Ledger:
        """The account of the jobs now present: those gone are struck off, new ones have half a turn on credit."""
        if tuple(jobs) == self.jobs:
            return replace(self, service=np.array(service))
        first, second = tasks_of(scale, pairs)
        place, now = {job: i for i, job in enumerate(self.jobs)}, {job: i for i, job in enumerate(jobs)}
        old = np.array([*(place.get(job, -1) for job in jobs), -1], dtype=np.int64)  # -1 picks the last entry: none
        index = np.full((len(self.jobs) + 1, len(self.jobs) + 1), -1, dtype=np.int64)
        index[self.first, self.second] = np.arange(len(self.first))
        was = np.where((old[first] >= 0) & ((second < 0) | (old[second] >= 0)), index[old[first], old[second]], -1)
        there = was >= 0
        types = self.share.shape[1]
        share, deficit = np.zeros((len(first), types)), np.zeros((len(first), types))
        time = np.where(second < 0, length / 2.0, 0.0)[:, None] * np.ones(types)
        known, turn = np.zeros(len(first), dtype=np.int64), np.full(len(first), NO_TURN, dtype=np.int64)
        for new, had in ((share, self.share), (time, self.time), (deficit, self.deficit), (known, self.known), (turn, self.turn)):
            new[there] = had[was[there]]
        for pair in np.flatnonzero((self.turn >= 0) & (self.second >= 0)):  # a job whose mate has left goes on alone
            left = [now[job] for job in (self.jobs[self.first[pair]], self.jobs[self.second[pair]]) if job in now]
            if len(left) == 1:
                turn[np.flatnonzero((first == left[0]) & (second < 0))] = self.turn[pair]
        return replace(
            self, jobs=tuple(jobs), first=first, second=second, share=share, time=time, deficit=deficit, known=known, turn=turn,
            service=np.array(service), stale=True,
        )  # fmt: skip

    def renewed(self, share: Floats, paired: Floats, now: float, length: float) -> Ledger:
        """With new shares: what was owed under the old ones is carried along, and counting begins again.

        Shares of pairs stand in the order of their members' positions.
        """
        elapsed = now - self.computed if np.isfinite(self.computed) else 0.0
        deficit = self.deficit + self.share * elapsed - (self.time - length / 2.0)
        table = np.empty_like(self.share)
        alone = self.second < 0
        table[alone] = share[self.first[alone]]
        if not alone.all():
            by_members = np.lexsort((self.second[~alone], self.first[~alone]))
            table[np.flatnonzero(~alone)[by_members]] = paired
        half = np.full_like(table, length / 2.0)
        return replace(
            self, share=table, time=half, deficit=deficit, known=np.ones(len(table), dtype=np.int64), total=half.sum(axis=0),
            computed=now, stale=False,
        )  # fmt: skip


def tasks_of(scale: Ints, pairs: bool) -> tuple[Ints, Ints]:
    """Members of all tasks: each job, and behind it its pairs with the jobs before it that have gangs of its size."""
    jobs = np.arange(len(scale))
    if not pairs:
        return jobs, np.full(len(scale), -1, dtype=np.int64)
    late, early = np.tril_indices(len(scale), -1)
    equal = scale[late] == scale[early]
    late, early = late[equal], early[equal]
    first, second = np.concatenate((jobs, early)), np.concatenate((np.full(len(scale), -1), late))
    order = np.lexsort((first, second >= 0, np.maximum(first, second)))
    return first[order], second[order]
