"""Quotas between a policy and the cluster: they bind whatever the policy answers, because the engine applies them.

Before a decision borrowers give back what others are promised and wait for (`take_back`). Of a ranking, rows beyond their quota are left
out as if the policy had not wanted them now (`cut_key`). A policy that assigns is shown only the rows that may run (`shown`), and what it
gives beyond a quota is cut (`cut_assignments`). Runs in which no queue has a quota never come here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gantline.admission.quotas import QuotaClaim, QuotaTree
from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import RefusedError
from gantline.core.phases import PENDING, RESIZING, RUNNING, STARTING
from gantline.core.plan import Assignments, Misfit, Ranking
from gantline.core.reasons import Reason, sentence
from gantline.engine.grants import Grants
from gantline.engine.quota_cut import cut_to_quotas
from gantline.engine.quota_words import USER, binding_queue, bound, with_holders
from gantline.engine.state import State

_BEHIND = 1e300  # the key of one that runs beyond its quota: it stays only where no other row needs its place


@dataclass(frozen=True)
class CommonQuotas:
    """Quotas that apply to each user and each queue, beside those of the queue tree."""

    user: float = math.inf
    queue: float = math.inf

    def __bool__(self) -> bool:
        return math.isfinite(self.user) or math.isfinite(self.queue)


class QuotaGate:
    """Applies the quotas of one run."""

    def __init__(self, state: State, grants: Grants) -> None:
        self.state, self.grants = state, grants
        self.bounds = CommonQuotas()
        self._tree: tuple[tuple[object, ...], QuotaTree] | None = None
        self.denied: Ints = np.zeros(0, dtype=np.int64)  # rows that wait because of a quota
        self.torn: Ints = self.denied  # rows that wait because another member of their group does

    @property
    def active(self) -> bool:
        """Whether any quota binds at all."""
        tree = self.state.tables.queue_tree
        return bool(self.bounds) or (bool(tree) and any(queue.bounded for queue in tree.values()))

    def tree(self) -> QuotaTree:
        """The queues as they are now, over what the cluster has now: free devices and those that rows hold."""
        t = self.state.tables
        capacity = int(t.NI[c.N_FREE][t.NI[c.N_UP] == 1].sum()) + int((t.D[c.D_HOLDER] >= 0).sum() + (t.D[c.D_HOLDER] == c.SHARED).sum())
        known = (capacity, self.bounds, len(t.queues), tuple(t.queue_tree.values()))
        if self._tree is None or self._tree[0] != known:
            self._tree = known, QuotaTree(t.queues, t.queue_tree, float(capacity), self.bounds.queue, self.bounds.user)
        return self._tree[1]

    # --- before a decision ----------------------------------------------------------------------------------------------
    def take_back(self, ranks: bool) -> int:
        """Borrowers give back what others are promised and wait for; returns how many stop. Also finds the rows that wait for a quota."""
        rows, I, F = self.state.rows, self.state.tables.I, self.state.tables.F
        runs = self._runs(rows)
        first = np.lexsort((rows, np.where(runs, F[c.LAST_START][rows], -F[c.PRIORITY][rows]), ~runs))
        rows, runs = rows[first], runs[first]
        count = runs | (I[c.PHASE][rows] == PENDING)
        rows, runs = rows[count], runs[count]
        tree = self.tree()
        sizes = self._sizes(rows, runs) if ranks else self._least(rows, runs)
        claims = self._claims(rows, sizes, runs)
        allowed = tree.pick(claims, strict=not ranks)
        self.denied = np.array([claim.row for claim in claims if claim.row not in allowed], dtype=np.int64)
        self.torn = self.torn[:0]
        stopped = [claim.row for claim in claims if claim.runs and claim.row not in allowed]
        for row in stopped:
            self.grants.stop(row, Reason.QUOTA)
        if stopped:
            self.grants.refresh()
            self.state.rebuild()
        return len(stopped)

    def shown(self) -> Ints:
        """The rows that a policy which assigns may give devices to."""
        rows = self.state.rows
        return rows[~np.isin(rows, self.denied)] if len(self.denied) else rows

    # --- of an answer ---------------------------------------------------------------------------------------------------
    def cut_key(self, ranking: Ranking, rows: Ints) -> tuple[Floats, Bools]:
        """The key without the rows beyond their quota, and which those are. One that runs and may be stopped goes behind all others."""
        runs = self._runs(rows)
        wanted = np.isfinite(ranking.key) | (runs & (not ranking.preempt))
        count = wanted & (runs | (self.state.tables.I[c.PHASE][rows] == PENDING))
        order = np.lexsort((rows, ranking.key)) if ranking.preempt else np.lexsort((rows, ranking.key, ~runs))
        order = order[count[order]]
        claims = self._claims(rows[order], self._sizes(rows[order], runs[order]), runs[order])
        allowed = self.tree().pick(claims, strict=ranking.misfit == Misfit.STOP)
        denied = count & ~np.isin(rows, np.fromiter(allowed, dtype=np.int64, count=len(allowed)))
        key = np.where(denied & ~runs, np.inf, np.where(denied, _BEHIND, ranking.key))
        self.denied = rows[denied]
        return key, denied

    def still_beyond(self, rows: Ints) -> list[int]:
        """Of these rows, those that run although their quota does not allow it beside all others that do; they come last."""
        held = self.state.running_rows
        late = np.isin(held, rows)
        order = held[np.lexsort((held, self.state.tables.F[c.KEY][held], late))]
        claims = self._claims(order, self._sizes(order, np.ones(len(order), dtype=np.bool_)), np.ones(len(order), dtype=np.bool_))
        allowed = self.tree().pick(claims)
        return [row for row in rows.tolist() if row in held and row not in allowed]

    def fill(self, key: Floats, rows: Ints, denied: Bools) -> Floats | None:
        """A key for those denied that may run all the same, because a row which came before them found no place; None: no row may.

        They count as if they ran already, so that the next decision leaves them alone.
        """
        I = self.state.tables.I
        waits = I[c.PHASE][rows] == PENDING
        unplaced = waits & ~denied & np.isfinite(key)
        fillers = waits & denied
        if not unplaced.any() or not fillers.any():
            return None
        runs = self._runs(rows)
        group = np.where(runs, 0, np.where(fillers, 1, 2))
        order = np.lexsort((rows, key, group))
        order = order[(runs | fillers | unplaced)[order]]
        claims = self._claims(rows[order], self._sizes(rows[order], runs[order]), (runs | fillers)[order])
        allowed = self.tree().pick(claims)
        if not all(int(row) in allowed for row in rows[runs]):
            return None
        may = fillers & np.isin(rows, np.fromiter(allowed, dtype=np.int64, count=len(allowed)))
        self.denied = rows[denied & waits & ~may]
        return np.where(may | runs, key, np.inf) if may.any() else None

    def cut_assignments(self, rows: Ints, table: Assignments) -> tuple[Assignments, Ints]:
        """The assignments within the quotas, and rows that keep what they have because they may not have more."""
        runs = self._runs(rows[table.job])
        least = self._least(rows[table.job], runs)
        found = cut_to_quotas(self.tree(), self.state.tables, self._claims(rows[table.job], least, runs), table)
        self.denied, self.torn = np.union1d(self.denied, found.denied), found.torn
        return found.table, found.keeps

    def write_reasons(self) -> None:
        """Write the reason of rows that wait because of a quota, or for a member of their group that does."""
        I = self.state.tables.I
        I[c.REASON, self.torn[I[c.PHASE][self.torn] == PENDING]] = int(Reason.TOGETHER)
        if not len(self.denied):
            return
        tree = self.tree()
        held = self._usage(tree)
        for row in self.denied[I[c.PHASE][self.denied] == PENDING].tolist():
            size, queue, user = self._size(row), int(I[c.QUEUE, row]), int(I[c.USER, row])
            if size > tree.most(queue)[0]:
                I[c.REASON, row] = int(Reason.OVER_QUOTA)
            elif binding_queue(tree, held, queue, user, size) is not None:
                I[c.REASON, row] = int(Reason.QUOTA)
            elif int(I[c.REASON, row]) in (Reason.ARRIVED, Reason.DEFERRED, Reason.NONE):
                I[c.REASON, row] = int(Reason.RESOURCES)

    def check_size(self, job: str, queue: str, size: int) -> None:
        """Refuse a job that its queue could never hold; if the quota shrinks later, the job waits and its row has the reason."""
        if not self.active:
            return
        most, owner = self.most(queue)
        if size > most:
            fix = f"ask for less, or raise the quota of queue '{owner}'" if owner else "ask for less"
            raise RefusedError(f"job '{job}' {self.too_much(size, most, owner)}", where="submit", fix=fix)

    def may_grow(self, row: int, by: int) -> bool:
        """Whether the queue of a row that runs may hold so many devices more."""
        if not self.active:
            return True
        tree, I = self.tree(), self.state.tables.I
        held = self._usage(tree)
        user = held.get(("user", int(I[c.USER, row])), 0.0) + by <= tree.user_quota
        return user and all(held.get(("queue", at), 0.0) + by <= tree.nodes[at].limit for at in tree.paths[int(I[c.QUEUE, row])])

    def words(self, row: int) -> str:
        """Which quota keeps a row waiting, and which jobs use it."""
        I, t, tree = self.state.tables.I, self.state.tables, self.tree()
        size, queue, user = self._size(row), int(I[c.QUEUE, row]), int(I[c.USER, row])
        most, owner = tree.most(queue)
        if size > most:
            return self.too_much(size, most, owner)
        at = binding_queue(tree, self._usage(tree), queue, user, size)
        if at is None:
            return sentence(int(I[c.REASON, row]))
        rows = self.state.running_rows
        mine = [one for one in rows.tolist() if (I[c.USER, one] == user if at == USER else at in tree.paths[int(I[c.QUEUE, one])])]
        sizes = self._sizes(np.array(mine, dtype=np.int64), np.ones(len(mine), dtype=np.bool_)).tolist()
        return with_holders(bound(tree, at, t.users[user]), [(t.ids[one], size) for one, size in zip(mine, sizes)])

    @staticmethod
    def too_much(size: float, most: float, owner: str) -> str:
        """Why a job of that size never runs."""
        holder = f"queue '{owner}'" if owner else "its user"
        return f"asks for {size:g} devices, and {holder} may hold {most:g} at most"

    def most(self, queue: str) -> tuple[float, str]:
        """The most that a job of a queue can ever hold, and which queue limits it; the queue may be new."""
        t = self.state.tables
        names = [*t.queues, queue]
        return QuotaTree(names, t.queue_tree, math.inf, self.bounds.queue, self.bounds.user).most(len(names) - 1)

    # --- numbers --------------------------------------------------------------------------------------------------------
    def _usage(self, tree: QuotaTree) -> dict[tuple[str, int], float]:
        """Devices that each queue (with those below it) and each user holds."""
        found: dict[tuple[str, int], float] = {}
        rows = self.state.running_rows
        sizes = self._sizes(rows, np.ones(len(rows), dtype=np.bool_))
        I = self.state.tables.I
        for row, size in zip(rows.tolist(), sizes.tolist()):
            for key in (*(("queue", at) for at in tree.paths[int(I[c.QUEUE, row])]), ("user", int(I[c.USER, row]))):
                found[key] = found.get(key, 0.0) + size
        return found

    def _runs(self, rows: Ints) -> Bools:
        phase = self.state.tables.I[c.PHASE][rows]
        return np.asarray((phase == RUNNING) | (phase == STARTING) | (phase == RESIZING))

    def _sizes(self, rows: Ints, runs: Bools) -> Floats:
        """Devices that rows hold, or ask for."""
        I, shared = self.state.tables.I, self.state.tables.granted
        held = I[c.HELD][rows]
        if shared:
            held = np.where([row in shared for row in rows.tolist()], np.maximum(held, I[c.GPUS][rows]), held)
        sizes: Floats = np.where(runs, held, I[c.GPUS][rows]).astype(np.float64)
        return sizes

    def _least(self, rows: Ints, runs: Bools) -> Floats:
        """The fewest devices with which rows go on: policies that assign may give less than was asked for."""
        I = self.state.tables.I
        sizes, least = self._sizes(rows, runs), I[c.MIN_GPUS][rows]
        return np.where((least > 0) & (I[c.MAX_GPUS][rows] > least), np.minimum(sizes, least), sizes)

    def _size(self, row: int) -> float:
        I = self.state.tables.I
        return float(I[c.MIN_GPUS, row] or I[c.GPUS, row])

    def _claims(self, rows: Ints, sizes: Floats, runs: Bools) -> list[QuotaClaim]:
        I = self.state.tables.I
        fixed = runs & ~self.state.movable(rows)
        columns = (rows, I[c.QUEUE][rows], I[c.USER][rows], sizes, runs, fixed)
        return [QuotaClaim(*values) for values in zip(*(column.tolist() for column in columns))]
