"""An incarnation goes on with other devices: what is written for it, how newcomers start, and when the switch is complete.

A job with a fixed number of processes reads its new devices from ``grant.json`` and reports when it uses them. In a job with a rank per
device some ranks stay, in their order, others leave and newcomers join: on CPU slots, which are alike, the first ranks stay; a GPU keeps
its rank. What has not come about in time is called off where it still can be, and else the job is stopped and starts again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from gantline.engine.executor import Order, Verb
from gantline.live.local.incarnation import Incarnation
from gantline.live.local.orders import Writer
from gantline.live.local.terms import tell_terms
from gantline.live.premises import Task

_LEAST = 60.0  # seconds that a job has at least to switch, once everything is there for it
JOIN_LIMIT = 600.0  # seconds that newcomers have to make themselves ready


def go_on(one: Incarnation, order: Order, task: Task, writer: Writer) -> None:
    """The incarnation goes on under a new epoch, with other devices or after a rest; it says itself when it has switched."""
    slots = writer.alike
    moved = set(order.devices) != set(one.devices) and not (slots and len(order.devices) == len(one.devices))
    one.epoch, one.resumed, one.refusal = order.epoch, order.done, ""
    if order.verb is Verb.STOP:
        one.write_order(epoch=order.epoch)
        return
    base = one.order.get("revision", 0) + 1
    about: dict[str, object] = {"epoch": order.epoch, "resumed": order.done, "revision": base, "base": base, "suspended": False}
    about |= tell_terms(one, order)
    if set(order.devices) != set(one.devices) and not writer.stays(one, order.devices):
        _stop(one, order, about)
        return
    if not moved:
        one.devices = order.devices
        one.write_order(**about, engine_devices=list(order.devices))
        return
    grant, change = writer.grant(order, order.devices), None
    one.target = order.devices
    if task.launch.processes == 0:
        members, one.target = seats(one.devices, order.devices, slots)
        if not members:  # no rank with the job's state would be left: after a refusal its devices may differ from the engine's
            _stop(one, order, about)
            return
        change = writer.change(order, task.launch, members, one.target)
        grant = writer.grant(order, one.target) | {"members": list(members), "world": len(one.target)}
    one.switching = time.monotonic()
    one.announce(grant, **about, engine_devices=list(one.target), previous_devices=list(one.devices), change=change)


def _stop(one: Incarnation, order: Order, about: Mapping[str, object]) -> None:
    """It saves and ends, and starts again on its new devices."""
    one.believed = order.done
    one.write_order(**about, want="stop", believed=order.done)


def seats(old: Sequence[int], new: Sequence[int], alike: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which ranks stay, in their new order, and the device of each rank then."""
    if alike:
        return tuple(range(min(len(old), len(new)))), tuple(new)
    members = tuple(rank for rank, device in enumerate(old) if device in new)
    return members, (*(old[rank] for rank in members), *(device for device in new if device not in old))


def look(one: Incarnation, join_limit: float) -> bool:
    """Whether it has just switched; one that does not in time goes on as it was, or is stopped and starts again on its new devices."""
    if one.has_switched:
        refused = one.state.get("refused") or {}
        if refused.get("epoch") == one.epoch:
            one.refusal = str(refused.get("why"))
        else:
            one.devices = one.target
        one.switching = 0.0
        return True
    one.look_again()
    change, waited = one.order.get("change"), time.monotonic() - one.switching
    if change and change["epoch"] == one.epoch and not change.get("refuse"):
        if not one.decided():
            if waited > join_limit:
                one.switching = time.monotonic()
                one.write_order(change={**change, "refuse": f"its new ranks were not ready within {join_limit:g} s"})
            return False
        if "decided" not in change:
            one.switching = time.monotonic()  # from now on it is a matter of steps
            one.write_order(change={**change, "decided": True})
            return False
    if waited > max(_LEAST, 2.0 * float(one.order.get("grace", 10.0))):
        one.switching = 0.0
        one.write_order(want="stop", believed=one.resumed)
    return False
