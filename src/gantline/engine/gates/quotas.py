"""Quotas between a policy and the cluster: they bind whatever the policy answers, because the engine applies them when it commits.

`admission.arbiter` is the rule. A ranking is walked by it (`walk`). A policy that assigns is shown only the rows that may run (`shown`);
what it gives is brought within the quotas (`cut`), and a row that its queue is promised devices for and that it has left waiting
starts all the same (`keep_promises`). Runs in which no queue has a quota never come here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import SHARED, Device, Job, Node, Option
from gantline.core.errors import RefusedError
from gantline.core.phases import PENDING, RESIZING, RUNNING, STARTING
from gantline.core.plan import Assignment, Assignments, Misfit, Mode
from gantline.core.reasons import Reason, sentence
from gantline.core.tables import Tables
from gantline.engine.commit.commit import commit_assignments
from gantline.engine.gates.quota_walk import QuotaNotes, walk_within_quotas
from gantline.engine.grants import Grants
from gantline.engine.option_rows import size_of, smaller_way
from gantline.engine.settings import Switch
from gantline.engine.state import BeforeWalk, State
from gantline.policies.admission.arbiter import Books, QuotaClaims, arbitrate, lines_for, within_limits
from gantline.policies.admission.quotas import QuotaTree

_NAMES_QUOTA = (Reason.QUOTA, Reason.OVER_QUOTA)
_MAY_BE_A_QUOTA = (
    Reason.NONE, Reason.ARRIVED, Reason.RESOURCES, Reason.PRIORITY, Reason.FRAGMENTED, Reason.DEFERRED, Reason.BLOCKED, *_NAMES_QUOTA,
)  # fmt: skip


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

    @property
    def exceeded(self) -> bool:
        """Whether a quota has become less than what is held."""
        if not self.active:
            return False
        books = self._books()
        return bool((books.used > books.limit).any() or (books.by_user > books.user_quota).any())

    def tree(self) -> QuotaTree:
        """The queues as they are now, over what the cluster has now: free devices and those that rows hold."""
        t = self.state.tables
        known = (self._capacity(), self.bounds, len(t.queues), tuple(t.queue_tree.values()))
        if self._tree is None or self._tree[0] != known:
            self._tree = known, QuotaTree(t.queues, t.queue_tree, float(known[0]), self.bounds.queue, self.bounds.user)
        return self._tree[1]

    def _capacity(self) -> int:
        t = self.state.tables
        return int(t.NI[Node.FREE][t.NI[Node.UP] == 1].sum()) + int((t.D[Device.HOLDER] >= 0).sum() + (t.D[Device.HOLDER] == SHARED).sum())

    # --- of a ranking ---------------------------------------------------------------------------------------------------
    def walk(self, key: Floats, rows: Ints, option: Ints | None = None) -> float:
        """Start and stop gangs in the order of the keys; returns the next finish. With `option`, only within promises: see `QuotaNotes`."""
        state, log = self.state, self.state.log
        notes = self.notes(len(state.waiting_rows), option)
        return float(
            walk_within_quotas(state.matrices, state.lists, key, rows, state.now, state.rules, log.columns, state.scratch, state.out, notes)
        )

    def notes(self, waits: int, option: Ints | None = None) -> QuotaNotes:
        """What a walk over at most so many rows that wait begins with."""
        books, width, types = self._books(), self.state.scratch.shape[1], len(self.state.tables.cluster.types)
        return QuotaNotes(
            books, lines_for(books, waits), np.zeros(width, dtype=np.int64), np.zeros(len(books.by_user), dtype=np.int64),
            np.zeros(len(books.parent) * types, dtype=np.int64), *((books.leaf, False) if option is None else (option, True)),
        )  # fmt: skip

    # --- of assignments -------------------------------------------------------------------------------------------------
    def shown(self) -> Ints:
        """The rows that a policy which assigns may give devices to: those that run, then by priority and arrival, none before its turn."""
        rows = self.state.rows
        runs, waits = self._runs(rows), self.state.tables.I[Job.PHASE][rows] == PENDING
        order = np.lexsort((rows, -self.state.tables.F[Job.PRIORITY][rows], ~runs))
        asked = np.where(runs | waits, self._least(rows, runs), 0.0)
        holds = arbitrate(self._books(rows[:0]), self._claims(rows[order], asked[order]), float(self._capacity()), strict=True)
        hidden = rows[order][(holds <= 0.0) & waits[order]]
        return rows[~np.isin(rows, hidden)] if len(hidden) else rows

    def cut(self, rows: Ints, table: Assignments) -> tuple[Assignments, Ints]:
        """The assignments within the quotas, and rows that keep what they have although the plan says otherwise."""
        t, planned = self.state.tables, rows[table.job]
        sizes = np.array([size_of(t, row, item) for row, item in zip(planned.tolist(), table)], dtype=np.float64)
        if not self._lends(planned, sizes):
            self.torn = planned[:0]
            return table, self.torn
        named, first = np.unique(planned, return_index=True)  # shares of the time count once
        first.sort()
        left_out = self.state.rows[~np.isin(self.state.rows, named)]
        left_out = left_out[np.lexsort((left_out, -t.F[Job.PRIORITY][left_out]))]
        claimants = np.concatenate([planned[first], left_out])
        claims = self._claims(claimants, np.concatenate([sizes[first], np.zeros(len(left_out))]))
        shares = (table.column("group") >= 0) | (table.column("mode") != int(Mode.EXCLUSIVE))
        room = math.inf if shares.any() else float(self._capacity())  # with shared devices the commit finds out how much there is
        holds = arbitrate(self._books(rows[:0]), claims, room)
        found = cut_to_quotas(t, planned, sizes, table, *(dict(zip(claimants.tolist(), each.tolist())) for each in (holds, claims.held)))
        self.torn = found.torn
        goes_on = left_out[(holds[len(first) :] > 0.0) & self._runs(left_out)]
        return found.table, np.concatenate([found.keeps, goes_on])

    def _lends(self, planned: Ints, sizes: Floats) -> bool:
        """Whether any queue or user would hold more than its quota by the plan."""
        state = self.state
        fixed = state.running_rows[~np.isin(state.running_rows, planned) & ~state.movable(state.running_rows)]
        books = self._books(np.concatenate([planned, fixed]), np.concatenate([sizes, self._sizes(fixed)]))
        return bool((books.used > books.quota).any() or (books.by_user > books.user_quota).any())

    def keep_promises(self, planned: Ints) -> tuple[int, int]:
        """Start rows that wait within what their queues are promised, and stop borrowers for them; how many have started and stopped.

        `planned` are the rows of the plan, in its order: of a queue's borrowers the last of them gives way first. Who starts and who
        stops for it is found by a walk that is undone; then it is done like any other stop and start.
        """
        state, t, I = self.state, self.state.tables, self.state.tables.I
        waits, books = state.waiting_rows, self._books()
        waits = waits[~np.isin(waits, self.torn)]
        queues = books.domain[I[Job.QUEUE][waits]]
        waits = waits[books.used[queues] + self._smallest(waits) <= books.quota[queues]]
        if not (len(waits) or self.exceeded):
            return 0, 0
        place = np.full(t.F.shape[1], len(planned))
        place[planned[::-1]] = np.arange(len(planned))[::-1]
        rows = state.rows.copy()
        order = np.lexsort((rows, -t.F[Job.PRIORITY][rows], place[rows]))
        key = np.empty(len(rows))
        key[order] = np.arange(len(rows))
        key[~(np.isin(rows, waits) | self._runs(rows))] = np.inf
        starts, stops = self._tried(key, rows, waits)
        for row in stops:
            self.grants.stop(row, Reason.QUOTA)
        if stops:
            self.grants.refresh()
            state.rebuild()
        if not starts:
            return 0, len(stops)
        state.log.reserve(2 * t.D.shape[1] + len(rows) + 8, 4 * t.D.shape[1] + 8)
        reasons = I[Job.REASON][rows].copy()
        OI, options = t.options.I, list(starts.values())
        table = Assignments(np.searchsorted(rows, list(starts)), gpus=OI[Option.GPUS][options], type=OI[Option.TYPE][options])

        commit_assignments(self.grants, rows, table, keeps=state.running_rows.copy())
        still = I[Job.PHASE][rows] == PENDING
        I[Job.REASON, rows[still]] = reasons[still]
        return int(state.out[0]), len(stops) + int(state.out[1])

    def _tried(self, key: Floats, rows: Ints, waits: Ints) -> tuple[dict[int, int], list[int]]:
        """Which rows would start within their promises, with which option, and which would stop for them; nothing changes."""
        state, t, I = self.state, self.state.tables, self.state.tables.I
        before, keys, switch, out = BeforeWalk(state), t.F[Job.KEY][rows].copy(), state.SI.copy(), state.out.copy()
        special = [row for row, grant in self.grants.by_row.items() if grant.shared or grant.side or grant.fluid]
        I[Job.LOCKED, [row for row in special if not self._chained(row)]] = 1
        state.SI[Switch.PREEMPT], state.SI[Switch.MISFIT] = 0, int(Misfit.SKIP)
        state.log.reserve(2 * t.D.shape[1] + len(rows) + 8, 4 * t.D.shape[1] + 8)
        ran = state.running_rows.copy()
        option = np.full(t.F.shape[1], -1)
        elastic = waits[self._smallest(waits) < I[Job.SMALLEST][waits]]
        if len(elastic):
            asked = Assignments(np.arange(len(elastic)), gpus=self._smallest(elastic))
            option[elastic] = self.grants.options.of_table(elastic, asked)
        self.walk(key, rows, option)
        began = rows[(I[Job.PHASE][rows] == RUNNING) & ~np.isin(rows, ran)]
        began = began[np.argsort(I[Job.INTERVAL][began])]
        starts = dict(zip(began.tolist(), I[Job.OPTION][began].tolist()))
        stops: list[int] = ran[I[Job.PHASE][ran] == PENDING].tolist()
        before.restore()
        t.F[Job.KEY][rows], state.SI[:], state.out[:] = keys, switch, out
        return starts, stops

    def _chained(self, row: int) -> bool:
        """Show the walk a row that has its shared devices to itself as a gang of its own; False: others depend on what it has."""
        t, books = self.state.tables, self.grants.holdings
        devices = books.of(row).devices
        if self.grants.by_row[row].fluid or not books.shares(row) or any(books.tenants(device) != [row] for device in devices):
            return False
        t.D[Device.HOLDER, devices] = row
        t.D[Device.NEXT, devices] = [*devices[1:], -1]
        t.I[Job.HEAD, row], t.I[Job.HELD, row] = devices[0], len(devices)
        return True

    # --- in words -------------------------------------------------------------------------------------------------------
    def write_reasons(self) -> None:
        """Write the reason of rows that wait because of a quota, or for a member of their group that does."""
        I, tree, books = self.state.tables.I, self.tree(), self._books()
        I[Job.REASON, self.torn[I[Job.PHASE][self.torn] == PENDING]] = int(Reason.TOGETHER)
        rows = self.state.waiting_rows
        rows = rows[np.isin(I[Job.REASON][rows], _MAY_BE_A_QUOTA)]
        sizes, queues, free = self._least(rows, self._runs(rows)), I[Job.QUEUE][rows], self.state.tables.NI[Node.FREE].sum()
        never = sizes > tree.most_by_queue[queues]
        full = tree.beyond(books.limit, books.used, queues, sizes) | (books.by_user[I[Job.USER][rows]] + sizes > tree.user_quota)
        full |= tree.beyond(tree.own_quotas, books.used, queues, sizes) & (sizes > free)  # and there is nothing to borrow
        over = np.isin(I[Job.REASON][rows], _NAMES_QUOTA) & ~full
        I[Job.REASON, rows[over]] = int(Reason.RESOURCES)
        I[Job.REASON, rows[full]] = int(Reason.QUOTA)
        I[Job.REASON, rows[never]] = int(Reason.OVER_QUOTA)
        self.denied = rows[full | never]

    def check_size(self, job: str, queue: str, size: int) -> None:
        """Refuse a job that its queue could never hold; if the quota shrinks later, the job waits and its row has the reason."""
        if not self.active:
            return
        most, owner = self.most(queue)
        if size > most:
            fix = f"ask for less, or raise the quota of queue '{owner}'" if owner else "ask for less"
            raise RefusedError(f"job '{job}' {self.too_much(size, most, owner)}", where="submit", fix=fix)

    def may_grow(self, row: int, by: int) -> bool:
        """Whether the queue of a row may hold so many devices more."""
        I = self.state.tables.I
        return not self.active or bool(within_limits(self._books(), int(I[Job.QUEUE, row]), int(I[Job.USER, row]), float(by)))

    def words(self, row: int) -> str:
        """Which quota keeps a row waiting, and which jobs use it."""
        I, t, tree = self.state.tables.I, self.state.tables, self.tree()
        size, queue, user = self._size(row), int(I[Job.QUEUE, row]), int(I[Job.USER, row])
        most, owner = tree.most(queue)
        if size > most:
            return self.too_much(size, most, owner)
        at = binding_queue(tree, self._books(), queue, user, size)
        if at is None:
            return sentence(int(I[Job.REASON, row]))
        rows = self.state.running_rows
        mine = [one for one in rows.tolist() if (I[Job.USER, one] == user if at == USER else at in tree.paths[int(I[Job.QUEUE, one])])]
        sizes = self._sizes(np.array(mine, dtype=np.int64)).tolist()
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
    def _books(self, rows: Ints | None = None, sizes: Floats | None = None) -> Books:
        """What queues and users hold, or would if these rows held so much and no others anything."""
        t = self.state.tables
        rows = self.state.running_rows if rows is None else rows
        sizes = self._sizes(rows) if sizes is None else sizes
        return self.tree().books(t.I[Job.QUEUE][rows], t.I[Job.USER][rows], sizes, len(t.users))

    def _claims(self, rows: Ints, asked: Floats) -> QuotaClaims:
        """What the arbiter is told of rows for which a plan asks so much; nothing: it leaves them out."""
        I, runs = self.state.tables.I, self._runs(rows)
        held = np.where(runs, self._sizes(rows), 0.0)
        least = self._least(rows, runs)
        least = np.where(asked > 0.0, np.minimum(least, asked), least)
        stays = runs & ~self.state.movable(rows)
        return QuotaClaims(I[Job.QUEUE][rows], I[Job.USER][rows], held, least, asked, stays.astype(np.int64))

    def _runs(self, rows: Ints) -> Bools:
        phase = self.state.tables.I[Job.PHASE][rows]
        return np.asarray((phase == RUNNING) | (phase == STARTING) | (phase == RESIZING))

    def _sizes(self, rows: Ints) -> Floats:
        """Devices that rows hold."""
        I, shared = self.state.tables.I, self.state.tables.granted
        held = I[Job.HELD][rows]
        if shared:
            books = self.grants.holdings
            held = np.array(
                [
                    (len(books.of(row).devices) or int(I[Job.GPUS, row])) if row in shared else own
                    for row, own in zip(rows.tolist(), held.tolist())
                ]
            )
        return np.asarray(held, dtype=np.float64)

    def _least(self, rows: Ints, runs: Bools) -> Floats:
        """The fewest devices with which rows start or go on: policies that assign may give less than was asked for."""
        I = self.state.tables.I
        sizes, least = np.where(runs, self._sizes(rows), I[Job.GPUS][rows]), I[Job.MIN_GPUS][rows]
        found: Floats = np.where((least > 0) & (I[Job.MAX_GPUS][rows] > least), np.minimum(sizes, least), sizes)
        return found

    def _smallest(self, rows: Ints) -> Ints:
        """The fewest devices with which a policy that assigns may start rows."""
        I = self.state.tables.I
        smallest, least = I[Job.SMALLEST][rows], I[Job.MIN_GPUS][rows]
        found: Ints = np.where((least > 0) & (I[Job.MAX_GPUS][rows] > least), np.minimum(smallest, least), smallest)
        return found

    def _size(self, row: int) -> float:
        I = self.state.tables.I
        return float(I[Job.MIN_GPUS, row] or I[Job.GPUS, row])


# Assignments within the quotas: what a policy gives beyond them is cut, down to what the arbiter lets the job hold.
#
# A group that starts together waits as one: where a quota holds one of its members back, the others do not start
# either.


class WithinQuotas(NamedTuple):
    """A plan after the cut."""

    table: Assignments
    keeps: Ints  # rows that keep what they have, because they may not have more
    torn: Ints  # rows that get nothing because a quota holds back another member of their group


def cut_to_quotas(
    t: Tables, planned: Ints, sizes: Floats, table: Assignments, holds: Mapping[int, float], held: Mapping[int, float]
) -> WithinQuotas:
    """Each assignment with as many devices as its row may hold; `sizes` are what the plan gives, `held` what the rows have."""
    torn = _torn(planned, table, holds, held) if table.has("together") else set()
    items: list[Assignment] = []
    keeps: list[int] = []
    for row, size, item in zip(planned.tolist(), sizes.tolist(), table):
        most = holds[row]
        if most <= 0.0 or row in torn:
            continue
        if most >= size:
            items.append(item)
        elif most == held[row] or (smaller := smaller_way(t, row, item, int(most))) is None:
            keeps += [row] if held[row] else []
        else:
            items.append(smaller)
    kept, in_vain = (np.array(some, dtype=np.int64) for some in (keeps, sorted(torn)))
    return WithinQuotas(Assignments.of(items), kept, in_vain)


def _torn(planned: Ints, table: Assignments, holds: Mapping[int, float], held: Mapping[int, float]) -> set[int]:
    """The rows that wait and are to start together with one that may not."""
    groups, together = table.column("group").tolist(), table.column("together").tolist()
    waits = [(row, group) for row, group, whole in zip(planned.tolist(), groups, together) if whole and not held[row]]
    held_back = {group for row, group in waits if holds[row] <= 0.0}
    return {row for row, group in waits if group in held_back and holds[row] > 0.0}


# Describes which quota keeps a job waiting, and which jobs use it.

_NAMED = 5  # holders that are named
USER = -1  # in place of a queue: the quota is the user's


def binding_queue(tree: QuotaTree, books: Books, queue: int, user: int, size: float) -> int | None:
    """The node of the tree whose quota keeps a job of that size waiting, `USER` for its user's; None: only the devices do."""
    if books.by_user[user] + size > tree.user_quota:
        return USER
    path = [at for at in tree.paths[queue] if not tree.stands_for_several(at)]
    over = [at for bounds in (books.limit, books.quota) for at in path if books.used[at] + size > bounds[at]]
    return over[0] if over else None


def bound(tree: QuotaTree, at: int, user: str) -> str:
    """What a queue or a user may hold."""
    if at == USER:
        return f"user '{user}' may hold {tree.user_quota:g}"
    node = tree.nodes[at]
    holder = f"queue '{node.name}'"
    if math.isinf(node.limit):
        return f"{holder} has a quota of {node.quota:g} and finds nothing idle to borrow"
    more = f", {node.limit - node.quota:g} of them borrowed" if node.limit > node.quota else ""
    return f"{holder} may hold {node.limit:g}{more}"


def with_holders(text: str, holders: Sequence[tuple[str, float]]) -> str:
    """The text with the jobs that use the quota, and how much each holds."""
    if not holders:
        return text
    named = ", ".join(f"{job} ({size:g})" for job, size in holders[:_NAMED])
    more = f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else ""
    return f"{text}; it holds {sum(size for _, size in holders):g}: {named}{more}"
