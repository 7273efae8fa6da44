"""The keeper of a gang on several nodes: an actor on the first of them, which has an actor with `Hands` on each of the others.

These belong to it: Ray ends them when it ends. A gang runs whole or not at all: where one part fails or is lost, the others are ended.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

from gantline.live.local.gang_state import combined
from gantline.live.local.output import Log
from gantline.live.ray.hands import Hands, KeeperNews

if TYPE_CHECKING:
    from gantline.live.local.files import Values

_WAIT = 10.0  # seconds after which a part is asked again though nothing is new
_ENDS_ALL = ("failed", "stopped")


class GangPart(Protocol):
    """One node's part of the gang."""

    def order(self, order: Values) -> None: ...

    def news(self, seen: int, offset: int, wait: float) -> KeeperNews: ...

    def dismiss(self) -> None: ...


class SpreadGang(Hands):
    """All parts as one: it is asked and answers as a gang on one node does."""

    _parts: list[GangPart]

    @abstractmethod
    def far(self, name: str, order: Values, bundle: int) -> GangPart:
        """A part on another node, in that bundle of the gang's placement group."""

    def _begin(self, order: Values) -> None:
        self._log = Log(str(self.folder / "log"), int(order.get("log_bytes", 64 << 20)))
        self._asked_stop = self._ended_all = False
        self._order = dict(order)
        own = Hands(f"{self.name}.0", self._part(order, 0), self.address)
        self._parts = [own, *(self.far(f"{self.name}.{k}", self._part(order, k), k) for k in range(1, len(order["parts"])))]
        self._states: list[Values] = [{} for _ in self._parts]
        for number in range(len(self._parts)):
            threading.Thread(target=self._follow, args=(number,), name=f"gantline-part-{number}", daemon=True).start()

    def _obey(self, order: Values) -> None:
        self._order = dict(order)
        self._asked_stop |= order.get("want") == "stop"
        for number, part in enumerate(self._parts):
            part.order(self._part(order, number))

    def dismiss(self) -> None:
        for part in self._parts:
            part.dismiss()
        super().dismiss()

    def _part(self, order: Values, number: int) -> Values:
        """The order for one part: its ranks, and where all of them meet."""
        sizes = order["parts"]
        first = sum(sizes[:number])
        meet = {"MASTER_ADDR": self.address, "MASTER_PORT": str(self.port)}
        return {
            **order,
            "node": order["nodes"][number],
            "ranks": order["ranks"][first : first + sizes[number]],
            "first_rank": first,
            "meet": meet,
        }

    def _follow(self, number: int) -> None:
        """Collect state and output of one part until it is over."""
        part, seen, offset, over = self._parts[number], -1, 0, False
        while True:
            try:
                news = part.news(seen, offset, 0.0 if over else _WAIT)
            except Exception as error:  # Ray has many words for an actor that is gone
                news = KeeperNews(
                    seen + 1, {"phase": "over", "cause": "failed", "exit": None, "fault": "?", "why": _why(error)}, offset, b""
                )
            seen, offset = news.version, news.offset
            with self.changed:
                self._log.write(news.output)
                over = news.state.get("phase") == "over"
                if over and news.output:
                    continue  # there may be more
                self._states[number] = news.state
                if over and news.state.get("cause") in _ENDS_ALL and not self._asked_stop and not self._ended_all:
                    self._ended_all = True
                    self._end_others(number)
                self._see(combined(self._states, self._asked_stop))
            if over:
                return

    def _end_others(self, number: int) -> None:
        for other, part in enumerate(self._parts):
            if other != number:
                order = {**self._part(self._order, other), "want": "stop", "grace": 0.0, "serial": self.serial + 0.5}
                part.order(order)


def _why(error: Exception) -> str:
    return f"a node's part of the gang was lost: {str(error).splitlines()[0]}"
