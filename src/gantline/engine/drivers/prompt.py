"""An executor that carries out orders at once and reports at once: with it, orders and reports give every number of virtual time."""

from __future__ import annotations

import math

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.phases import RUNNING
from gantline.engine.executor import Can, News, Order, Report, Verb
from gantline.engine.state import State


class Prompt:
    """An executor that carries out orders at once and reports at once. Its jobs progress exactly as the tables say."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._alive: Ints = np.full(state.tables.I.shape[1], -1, dtype=np.int64)  # epoch by row
        self._over = self._alive.copy()  # the newest epoch that was stopped
        self._ended: dict[int, Report] = {}  # by row: its end, reported again on request
        self._reports: list[Report] = []

    def can(self, row: int) -> frozenset[Can]:
        return frozenset(Can) - {Can.MOVE}

    def send(self, order: Order, now: float) -> None:
        self._make_room()
        if order.epoch < self._alive[order.row]:  # fenced off
            self._reports.append(Report(News.STARTED, order.row, int(self._alive[order.row]), now, order.done))
        elif order.verb is Verb.START and order.row in self._ended:
            self._reports.append(self._ended[order.row])
        elif order.verb is Verb.START and order.epoch <= self._over[order.row]:  # its stop has come before it
            self._reports.append(Report(News.STOPPED, order.row, order.epoch, now, order.done))
        elif order.verb is Verb.START:
            self._alive[order.row] = order.epoch
            news = News.SUSPENDED if order.suspended else News.STARTED
            self._reports.append(Report(news, order.row, order.epoch, now, order.done, order.devices, revision=order.revision))
            if order.saves:
                self._reports.append(Report(News.SAVED, order.row, order.epoch, now, order.done, order.devices, revision=order.revision))
        else:
            self._alive[order.row] = -1
            self._over[order.row] = max(int(self._over[order.row]), order.epoch)
            self._reports += [Report(news, order.row, order.epoch, now, order.done) for news in (News.SAVED, News.STOPPED)]

    def next_time(self) -> float:
        return self.state.now if self._reports else float(self._ends()[1].min(initial=math.inf))

    def receive(self, now: float) -> list[Report]:
        found, self._reports = self._reports, []
        for row, seen, at in zip(*self._ends()):
            if seen <= now:
                end = Report(News.FINISHED, int(row), int(self._alive[row]), float(at), float(self.state.tables.F[Job.WORK, row]))
                self._ended[int(row)] = end
                found.append(end)
                self._alive[row] = -1
        return found

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """The gangs that ran there are known to be gone already."""

    def _make_room(self) -> None:
        """The tables grow when jobs are submitted."""
        short = self.state.tables.I.shape[1] - len(self._alive)
        if short > 0:
            self._alive, self._over = (np.concatenate([each, np.full(short, -1)]) for each in (self._alive, self._over))

    def _ends(self) -> tuple[Ints, Floats, Floats]:
        """Rows that run, when the end of each is seen (when it is due, and done), and when it is."""
        self._make_room()
        F, I, rows = self.state.tables.F, self.state.tables.I, self.state.running_rows
        rows = rows[(I[Job.PHASE][rows] == RUNNING) & (self._alive[rows] == I[Job.EPOCH][rows]) & (F[Job.RATE][rows] > 0.0)]
        at = F[Job.SINCE][rows] + (F[Job.WORK][rows] - F[Job.DONE][rows]) / F[Job.RATE][rows]
        return rows, np.maximum(F[Job.DUE][rows], at), at
