"""The queues as a tree: how many devices each is promised, what it may borrow, and what it weighs. The rule, as in Kueue's cohorts:

* A queue's **quota** is promised to its jobs and to those of the queues below it. A queue above others (``research`` above
  ``research/nlp``) bounds their sum; the cluster is above all. One that has no quota of its own is promised the sum of theirs.
* What a parent has and promises to none of its children belongs to those of its children that have no quota, together.
* A queue may **borrow** what others leave idle, up to its borrowing limit. Borrowing within a parent comes before borrowing from outside.

`admission.arbiter` says who may hold devices by it, and who gives way to whom. Devices count, whatever their type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.queues import Queue, ancestors
from gantline.policies.admission.arbiter import Books

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
        self._paths = np.full((len(queues), max(map(len, self.paths), default=0)), len(self.nodes), dtype=np.int64)
        for code, path in enumerate(self.paths):
            self._paths[code, : len(path)] = path
        self._parent = np.array([node.parent for node in self.nodes], dtype=np.int64)
        self._depths = np.array([node.depth for node in self.nodes], dtype=np.int64)
        self._quota, self._limit, self._weight = (
            np.array([getattr(node, name) for node in self.nodes], dtype=np.float64) for name in ("quota", "limit", "weight")
        )
        self.own_quotas = np.array([math.inf if self.stands_for_several(at) else node.quota for at, node in enumerate(self.nodes)])
        self._leaf = np.array([self._at[name] for name in queues], dtype=np.int64)
        self._domain = np.array([self._first_bounded(at) for at in self._leaf.tolist()], dtype=np.int64)
        self.most_by_queue = np.array([self.most(code)[0] for code in range(len(queues))])

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

    def _first_bounded(self, at: int) -> int:
        """The lowest queue from this one upwards that has a quota: below it the policy's order holds."""
        while at != ROOT and not math.isfinite(self.nodes[at].quota):
            at = self.nodes[at].parent
        return at

    def stands_for_several(self, at: int) -> bool:
        """Whether this node is the queues without a quota below some other."""
        return self.nodes[at].name.endswith(_OTHERS)

    # --- what it allows -------------------------------------------------------------------------------------------------
    def most(self, queue: int) -> tuple[float, str]:
        """The most that a job of this queue can ever hold, and which queue says so (or the user's quota)."""
        bounds = [(self.nodes[at].limit, self.nodes[at].name) for at in self.paths[queue]]
        return min([*bounds, (self.user_quota, "")], key=lambda bound: bound[0])

    def books(self, queues: Ints, users: Ints, sizes: Floats, known_users: int) -> Books:
        """The tree as the arbiter takes it, with jobs of these queues and users that hold so much."""
        used = np.zeros(len(self.nodes) + 1)
        np.add.at(used, self._paths[queues].ravel(), np.repeat(sizes, self._paths.shape[1]))
        by_user = np.zeros(known_users)
        np.add.at(by_user, users, sizes)
        return Books(
            self._parent,
            self._depths,
            self._quota,
            self._limit,
            self._weight,
            self._leaf,
            self._domain,
            used[:-1],
            by_user,
            np.array([self.user_quota]),
        )

    def beyond(self, bounds: Floats, used: Floats, queues: Ints, sizes: Floats) -> Bools:
        """Which jobs of these sizes would bring any queue of theirs above such a bound."""
        free = np.append(bounds - used, np.inf)
        return np.asarray((free[self._paths[queues]] < sizes[:, None]).any(axis=1))
