"""Crashes of the multi-process service, and the incarnations that they end: those are started again, which counts as no failure of theirs.

A client that makes its GPU raise an exception ends all clients on that GPU, and so does the end of a daemon or of its server. Clients then
fail by themselves, one a moment before the other, or hang. So the service is looked at every second while jobs run on slices, and whenever
one of these has failed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from gantline.live.local.incarnation import Incarnation
from gantline.live.local.mps import Mps
from gantline.live.local.slices import Slice

_LOG = logging.getLogger("gantline.live")
_PAUSE = 1.0  # seconds between two looks


class SliceCrashes:
    """Finds crashes, and marks the incarnations that they concern: ``lost`` in their orders says what happened."""

    def __init__(self, mps: Mps, slices: Callable[[Sequence[int]], Sequence[Slice]]) -> None:
        self._mps, self._slices, self._next = mps, slices, 0.0

    def look(self, alive: Sequence[Incarnation]) -> None:
        """Look at the service, if it is time to, and end what a crash has left hanging."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PAUSE
            self._look(alive)

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """One has ended: where a crash is the cause, it has been ended from outside.

        One that failed alone on its GPU has caused the crash itself.
        """
        state, gpus = one.state, self._gpus(one)
        if gpus and state.get("cause") == "failed" and state.get("exit") is not None and not one.order.get("lost"):
            crashes = self._look([*alive, one])
            beside = any(gpus & self._gpus(other) for other in alive if other is not one)
            one.order |= {"lost": why} if beside and (why := next((crashes[gpu] for gpu in gpus if gpu in crashes), "")) else {}
        if one.order.get("lost") and state.get("cause") != "finished":
            one.state = state | {"cause": "failed", "exit": None, "why": one.order["lost"]}

    def _look(self, alive: Sequence[Incarnation]) -> dict[str, str]:
        held = [(one, self._gpus(one)) for one in alive if one.order.get("want") != "stop"]
        crashes = self._mps.crashes(sorted({gpu for _, gpus in held for gpu in gpus}))
        found = {gpu: f"the multi-process service of GPU {gpu} crashed: {why}" for gpu, why in crashes.items()}
        for gpu, why in found.items():
            _LOG.warning("%s", why)
            for one, gpus in held:
                if gpu in gpus and not one.over:
                    one.write_order(want="stop", grace=0.0, lost=why)
        return found

    def _gpus(self, one: Incarnation) -> set[str]:
        return {part.gpu for part in self._slices(one.devices) if part.gpu is not None}
