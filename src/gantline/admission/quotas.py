"""Quotas: how many devices a queue is promised, what it may borrow, and which queue gives back. The rule, as in Kueue's cohorts:

* A queue's **quota** is promised to its jobs and to those of the queues below it. A queue above others (``research`` above
  ``research/nlp``) bounds their sum; the cluster is above all. One that has no quota of its own is promised the sum of theirs.
* What a parent has and promises to none of its children belongs to those of its children that have no quota, together.
* A queue may **borrow** what others leave idle, up to its borrowing limit. Borrowing within a parent comes before borrowing from outside.
* **Fair shares**: of queues that borrow, the one that has borrowed least for its weight comes first.
* **Taking back**: a queue that is promised devices and has waiting jobs gets them; borrowers give way, the newest first, and so does a
  queue that has borrowed more for its weight than one that waits would have then.

`QuotaTree.pick` is this rule: given what each job needs and an order, which jobs may hold devices now. Devices count, whatever their type.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gantline.core.queues import Queue, ancestors

_OTHERS = "\n"  # ends the name of those children of a queue that have no quota; no queue's name has it
ROOT = 0


@dataclass
class QuotaNode:
    """One queue of the tree, or what stands for several."""

    name: str
    parent: int
    depth: int  # of the root: 0
    quota: float = math.inf  # infinite: it has none, and is bounded by what is above it
    limit: float = math.inf  # with what it may borrow
    weight: float = 1.0
    children: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class QuotaClaim:
    """A job that holds devices or waits for some."""

    row: int
    queue: int  # code
    user: int
    size: float
    runs: bool = False
    fixed: bool = False  # it holds devices and cannot be stopped now


class QuotaTree:
    """The queues of a run with what each is promised. `queues` are names by code; `capacity` is what the cluster has."""

    def __init__(
        self, queues: Sequence[str], tree: Mapping[str, Queue], capacity: float,
        queue_quota: float = math.inf, user_quota: float = math.inf,
    ) -> None:  # fmt: skip
        self.capacity, self.user_quota = capacity, user_quota
        self._known = dict(tree)
        if math.isfinite(queue_quota):
            self._known |= {name: Queue(name, quota=queue_quota, borrow=0.0) for name in queues if name not in tree}
        self.nodes = [QuotaNode("", -1, 0, capacity, capacity)]
        self._at: dict[str, int] = {}
        for name in (*tree, *queues):
            self._enter(name)
        self._promise(ROOT)
        self._set_apart()
        for at, node in enumerate(self.nodes[1:], 1):
            node.depth = self._depth(at)
        self.paths = [self._path(self._at[name]) for name in queues]
        self.deepest = max(node.depth for node in self.nodes)

    # --- the tree -------------------------------------------------------------------------------------------------------
    def _enter(self, name: str) -> int:
        if name in self._at:
            return self._at[name]
        queue = self._known.get(name, Queue(name))
        above = queue.parent or (ancestors(name)[1] if "/" in name else "")
        parent = self._enter(above) if above and above != name else ROOT
        at = self._at[name] = len(self.nodes)
        self.nodes.append(QuotaNode(name, parent, 0, queue.quota, queue.quota + queue.borrow, queue.weight))
        self.nodes[parent].children.append(at)
        return at

    def _promise(self, at: int) -> None:
        """A queue above others without a quota of its own is promised the sum of theirs; nothing bounds it."""
        node = self.nodes[at]
        for child in node.children:
            self._promise(child)
        promised = [self.nodes[child].quota for child in node.children if math.isfinite(self.nodes[child].quota)]
        if promised and not math.isfinite(node.quota):
            node.quota = math.fsum(promised)

    def _set_apart(self) -> None:
        """Children without a quota share what is left of their parent's; where no child has one, nothing need be distinguished."""
        for at, node in enumerate(list(self.nodes)):
            free = [child for child in node.children if not math.isfinite(self.nodes[child].quota)]
            if not free or len(free) == len(node.children):
                continue
            left = node.quota - math.fsum(self.nodes[child].quota for child in node.children if child not in free)
            together = QuotaNode(
                node.name + _OTHERS, at, 0, max(left, 0.0), math.inf, math.fsum(self.nodes[child].weight for child in free), free
            )
            self.nodes.append(together)
            for child in free:
                self.nodes[child].parent = len(self.nodes) - 1

    def _depth(self, at: int) -> int:
        return 0 if at == ROOT else 1 + self._depth(self.nodes[at].parent)

    def _path(self, at: int) -> tuple[int, ...]:
        """A queue and those above it, without the root."""
        found = []
        while at != ROOT:
            found.append(at)
            at = self.nodes[at].parent
        return tuple(found)

    def stands_for_several(self, at: int) -> bool:
        """Whether this node is the queues without a quota below some other."""
        return self.nodes[at].name.endswith(_OTHERS)

    # --- what it allows -------------------------------------------------------------------------------------------------
    def most(self, queue: int) -> tuple[float, str]:
        """The most that a job of this queue can ever hold, and which queue says so (or the user's quota)."""
        bounds = [(self.nodes[at].limit, self.nodes[at].name) for at in self.paths[queue]]
        return min([*bounds, (self.user_quota, "")], key=lambda bound: bound[0])

    def pick(self, claims: Iterable[QuotaClaim], strict: bool = False) -> set[int]:
        """The rows that may hold devices now. Claims come in order: those of the same queue that come first are served first.

        With `strict` no job overtakes within a queue: behind a claim that must wait, all others of its queue wait.
        """
        return _Pick(self, list(claims), strict).run()


class _Pick:
    """One distribution. In each pass only queues from some depth on may be above their quotas: first none, last those below the root."""

    def __init__(self, tree: QuotaTree, claims: list[QuotaClaim], strict: bool) -> None:
        self.tree, self.strict = tree, strict
        self.usage = [0.0] * len(tree.nodes)
        self.by_user: dict[int, float] = {}
        self.room = tree.capacity
        self.allowed: set[int] = set()
        self.left: list[QuotaClaim] = []
        for claim in claims:
            if claim.fixed:
                self._take(claim)
            else:
                self.left.append(claim)

    def run(self) -> set[int]:
        self._pass(math.inf, [self.left])
        for depth in range(self.tree.deepest, 0, -1):
            groups: dict[int, list[QuotaClaim]] = {}
            for claim in self.left:
                path = self.tree.paths[claim.queue]
                if len(path) >= depth:
                    groups.setdefault(path[len(path) - depth], []).append(claim)
            self._pass(depth, groups.values(), groups)
        return self.allowed

    def _pass(self, depth: float, groups: Iterable[list[QuotaClaim]], nodes: Iterable[int] = (ROOT,)) -> None:
        """Serve the groups, each in its order; of several, the one that has borrowed least for its weight is next."""
        shut: set[tuple[str, int]] = set()  # queues and users whose next claim must wait
        turns = [self._turn(claims, at, node) for at, (node, claims) in enumerate(zip(nodes, groups)) if claims]
        heapq.heapify(turns)
        while turns:
            *_, node, claims = turn = turns[0]
            at, place = turn[2], turn[3]
            claim = claims[place]
            if ("queue", claim.queue) not in shut and ("user", claim.user) not in shut:
                if self._fits(claim, depth):
                    self._take(claim)
                elif self.strict and self.tree.most(claim.queue)[0] >= claim.size:
                    shut.add(("user", claim.user) if self._beyond_user_quota(claim) else ("queue", claim.queue))
            if place + 1 < len(claims):
                heapq.heapreplace(turns, self._turn(claims, at, node, place + 1))
            else:
                heapq.heappop(turns)
        self.left = [claim for claim in self.left if claim.row not in self.allowed]

    def _turn(self, claims: list[QuotaClaim], at: int, node: int, place: int = 0) -> tuple[float, bool, int, int, int, list[QuotaClaim]]:
        """When a group's next claim is served: by what its queue will have borrowed; a running job is stopped only if that is fairer."""
        queue, claim = self.tree.nodes[node], claims[place]
        share = (self.usage[node] - queue.quota + (0.0 if claim.runs else claim.size)) / queue.weight
        return share, claim.runs, at, place, node, claims

    def _fits(self, claim: QuotaClaim, depth: float) -> bool:
        if claim.size > self.room or self._beyond_user_quota(claim):
            return False
        for at in self.tree.paths[claim.queue]:
            node, then = self.tree.nodes[at], self.usage[at] + claim.size
            if then > node.limit or (node.depth < depth and then > node.quota):
                return False
        return True

    def _beyond_user_quota(self, claim: QuotaClaim) -> bool:
        return self.by_user.get(claim.user, 0.0) + claim.size > self.tree.user_quota

    def _take(self, claim: QuotaClaim) -> None:
        self.allowed.add(claim.row)
        self.room -= claim.size
        self.by_user[claim.user] = self.by_user.get(claim.user, 0.0) + claim.size
        for at in self.tree.paths[claim.queue]:
            self.usage[at] += claim.size
