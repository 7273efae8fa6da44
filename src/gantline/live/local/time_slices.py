"""Which jobs of this machine take turns on a device, written into their orders; `turns` says when a turn is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from gantline.live.local.incarnation import Incarnation
from gantline.live.local.turns import share_out


def let_take_turns(incarnations: Iterable[Incarnation]) -> None:
    """Let jobs that need parts of one device and are on it together take turns."""
    there: dict[int, dict[str, Incarnation]] = {}
    for one in incarnations:
        if not one.over and one.order.get("part") and len(one.devices) == 1:
            there.setdefault(one.devices[0], {})[one.job] = one
    for jobs in there.values():
        for job, turn in share_out({job: one.order["part"] for job, one in jobs.items()}).items():
            value = None if turn is None else list(turn)
            if jobs[job].order.get("turn") != value:
                with contextlib.suppress(OSError):  # a full disk: later, then
                    jobs[job].write_order(turn=value)
