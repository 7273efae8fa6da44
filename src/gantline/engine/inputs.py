"""Applies inputs from outside to the tables, which nothing else does: jobs, users' requests, nodes, queues, windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from gantline.core.inputs import Input, JobRequest, NodeEvent, Report, Reserve, SetJob, SetQueue, Submit, Unreserve, Use
from gantline.core.queues import Queue
from gantline.engine.gates.quotas import QuotaGate
from gantline.engine.gates.windows import WindowGate
from gantline.engine.grants import Grants
from gantline.engine.job_requests import JobRequests
from gantline.engine.node_changes import drain_node, join_node, lose_node, return_node
from gantline.engine.state import State
from gantline.engine.submissions import JobRows, Submissions, set_job


class Inputs:
    """Applies inputs, one after the other, and returns whether a policy could see a difference."""

    def __init__(self, state: State, grants: Grants, quotas: QuotaGate) -> None:
        self.state, self.grants, self.quotas = state, grants, quotas
        self.received: Callable[[Input], None] | None = None  # gets every input: the journal
        self.absorb: Callable[[Report], bool] | None = None  # set by the driver that handles reports
        self.use: Callable[[Use], None] | None = None  # set by the engine, which can find policies
        self.rows = JobRows(state)
        self.submissions = Submissions(state, quotas, self.rows)
        self.requests = JobRequests(grants, quotas, self.rows)

    @cached_property
    def windows(self) -> WindowGate:
        """What applies windows; few runs have any."""
        return WindowGate(self.state, self.grants, self.quotas)

    def apply(self, value: Input) -> bool:
        """Take in one input, now."""
        changed = True
        if isinstance(value, Report):
            changed = self.absorb is not None and self.absorb(value)
        elif isinstance(value, Submit):
            self.submissions.submit(value)
        elif isinstance(value, JobRequest):
            changed = sum(self.requests.apply(name, value) for name in value.jobs) > 0
        elif isinstance(value, SetJob):
            row, phase = self.rows.known(value.job, "set")
            changed = not phase.terminal and set_job(self.state.tables, row, value)
        elif isinstance(value, Use):
            changed = self.use is not None
            if self.use is not None:
                self.use(value)
        elif isinstance(value, SetQueue):
            self._set_queue(value)
        elif isinstance(value, Reserve | Unreserve):
            self.windows.apply(value)
        else:
            self._change_node(value)
        if self.received is not None:
            self.received(value)
        return changed

    def check(self, value: Input) -> None:
        """Raise what `apply` would, and change nothing."""
        t = self.state.tables
        if isinstance(value, Submit):
            self.submissions.check(value)
        elif isinstance(value, JobRequest):
            self.requests.check(value)
        elif isinstance(value, SetJob):
            row, _ = self.rows.known(value.job, "set")
            if value.queue is not None:
                self.quotas.check_size(value.job, value.queue, int(t.jobs.min_gpus[row] or t.jobs.gpus[row]))
        elif isinstance(value, SetQueue):
            Queue(value.name, value.weight, value.quota, value.borrow)
        elif isinstance(value, Reserve | Unreserve):
            self.windows.check(value)
        elif not isinstance(value, Report | Use) and value.kind != "join" and value.device(t.cluster) is None:
            value.find(t.cluster)

    def _set_queue(self, value: SetQueue) -> None:
        tree = self.state.tables.queue_tree
        if value.drop:
            tree.pop(value.name, None)
        else:
            tree[value.name] = Queue(value.name, value.weight, value.quota, value.borrow)

    def _change_node(self, value: NodeEvent) -> None:
        state = self.state
        if value.kind == "join":
            assert value.node is not None
            join_node(state, value.node)
            return
        device = value.device(state.tables.cluster)
        if device is not None:
            state.tables.kept_free.discard(device)  # what it is from now on is not up to a window
            state.tables.cordon(device, closed=value.kind == "drain")
            if state.tables.windows:
                self.windows.settle()
            return
        number = value.find(state.tables.cluster)
        up = state.tables.nodes.up[number] == 1
        if value.kind == "down":  # also one that drains: gangs may still be there
            lose_node(self.grants, number)
        elif value.kind == "drain" and up:
            drain_node(state, number)
        elif value.kind == "up" and not up:
            return_node(state, number)
