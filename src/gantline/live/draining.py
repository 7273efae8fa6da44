"""Stops a service together with its jobs, which are saved where they can be and go on when a service starts again."""

from __future__ import annotations

import time
from concurrent.futures import Future

from gantline.core.columns import Node
from gantline.core.inputs import Action, Input, JobRequest
from gantline.core.node_events import NodeEvent
from gantline.engine.drivers.message_queue import Message
from gantline.engine.state import State
from gantline.live.answers import settle
from gantline.live.loop_thread import LoopThread


def drain(thread: LoopThread, timeout: float) -> None:
    """Stop all jobs, saved where they can be, and decide nothing more; those that did not stop in time are left running."""
    nodes = thread.ask(lambda: _nodes_up(thread.loop.state))
    thread.send([NodeEvent(0.0, name, "drain") for name in nodes])
    _stop_all(thread)
    end = time.monotonic() + timeout
    while thread.ask(lambda: len(thread.loop.reconciler.live)) and time.monotonic() < end:
        time.sleep(0.02)
    future: Future[None] = Future()

    def finish(error: BaseException | None) -> None:
        thread.loop.messages.stop()  # before the next decision, which the next service makes
        settle(future, error, None)

    thread.loop.messages.post(Message([NodeEvent(0.0, name, "up") for name in nodes], finish, alone=True))
    thread.wait(future)


def _stop_all(thread: LoopThread) -> None:
    """Stop all jobs that run when the request is handled: nothing starts after it, and ended jobs are left out."""
    future: Future[None] = Future()

    def open_(at: float) -> tuple[list[Input], tuple[()]]:
        state = thread.loop.state
        return [JobRequest(at, Action.REQUEUE, state.tables.ids[row]) for row in state.running_rows.tolist()], ()

    thread.post(Message((), lambda error: settle(future, error, None), open_, alone=True))
    thread.wait(future)


def _nodes_up(state: State) -> list[str]:
    t = state.tables
    return [node.name for k, node in enumerate(t.cluster.nodes) if t.NI[Node.UP, k] == 1]
