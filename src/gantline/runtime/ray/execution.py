"""Carries out orders on a Ray cluster: as on one machine, but for how keepers begin, and what is told together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from gantline.engine.executor import News, Report
from gantline.runtime.bulletins import Bulletin, Ending, NodeNews
from gantline.runtime.launch import Launch
from gantline.runtime.local.execution import Execution
from gantline.runtime.local.incarnation import Incarnation
from gantline.runtime.local.news import report_of
from gantline.runtime.ray.incarnation import RayIncarnation


class RayKeepers:
    """Keepers are actors."""

    def begin(self, one: Incarnation, launch: Launch) -> None:
        assert isinstance(one, RayIncarnation)
        one.start()

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """Nothing more is known."""


@dataclass
class RayExecution(Execution):
    """Carries out one order at a time, in the runner's thread."""

    _told: list[tuple[Report, Ending | None]] | None = field(default=None)

    @contextmanager
    def together(self, nodes: Iterable[NodeNews]) -> Iterator[None]:
        """What is reported meanwhile is told at once, behind what has become of the nodes."""
        self._told = []
        try:
            yield
        finally:
            told, self._told = self._told, None
            self.contact.tell(Bulletin(tuple(nodes), tuple(told)))

    def _say(self, news: News, one: Incarnation) -> None:
        told = report_of(one, news, self.contact.task(one.row).saved, self.contact.clock)
        if self._told is not None:
            self._told.append(told)
        else:
            self.contact.tell(Bulletin(reports=(told,)))
