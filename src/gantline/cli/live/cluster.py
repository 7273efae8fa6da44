"""``gantline node cordon|drain|uncordon``: whether a node, or one of its devices, takes new jobs."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, WideForm, connect, moment
from gantline.cli.live.get import queues, reservations
from gantline.core.errors import UsageError
from gantline.core.fields import seconds
from gantline.core.queues import bounds_in_words

node_app = App(name="node")
Names = Annotated[str, Parameter(name="NODE", help="Names from 'gantline get nodes', or devices of them: cpu:2.")]


@node_app.command
def cordon(first: Names, /, *more: Names, home: HomeOption = None) -> None:
    """Let no new jobs come; those that are there stay."""
    with connect(home) as client:
        client.cordon(first, *more)
    print(first, *more, sep="\n")


@node_app.command
def drain(first: Names, /, *more: Names, home: HomeOption = None) -> None:
    """Let no new jobs come, and stop and save those that are there; they wait for other devices."""
    with connect(home) as client:
        answer = client.drain(first, *more)
    print(first, *more, sep="\n")
    say(f"note: {len(answer['jobs'])} job{'s' if len(answer['jobs']) != 1 else ''} asked to leave")


@node_app.command
def uncordon(first: Names, /, *more: Names, home: HomeOption = None) -> None:
    """Let jobs come again."""
    with connect(home) as client:
        client.uncordon(first, *more)
    print(first, *more, sep="\n")


# ``gantline reserve``: devices that are kept free for a window of time.

reserve_app = App(
    name="reserve",
    help_epilogue="""Examples:

  gantline reserve --nodes 2 --from 18:00 --for 4h
  gantline reserve --gpus 1 --from +30m --for 2h --name demo --user ann
  gantline reserve --on node3 --from 2026-12-01T08:00 --for 1d --queue research
  gantline reserve list
  gantline reserve cancel demo""",
)
_FIX = "write a time of day (18:00), a date (2026-12-01T08:00), a time from now (+2h), or now"


@reserve_app.default
def reserve(
    *,
    home: HomeOption = None,
    nodes: int | None = None,
    gpus: int | None = None,
    on: list[str] | None = None,
    begins: Annotated[str, Parameter(name="--from")] = "now",
    lasts: Annotated[str, Parameter(name="--for")],
    name: str | None = None,
    queue: list[str] | None = None,
    user: list[str] | None = None,
) -> None:
    """Keep devices free for a window of time. Without --queue and --user nothing runs on them then.

    Args:
        nodes: So many nodes, those with least in the way.
        gpus: So many single devices.
        on: These nodes or devices (node3, cpu:2); may be repeated.
        name: What to call it; by default window-1 and so on.
        queue: Jobs of this queue, and of those below it, may use it; may be repeated.
        user: Jobs of this user may use it; may be repeated.
        begins: When it begins: 18:00, 2026-12-01T08:00, +2h or now.
        lasts: How long it lasts: 90m, 4h, 1d.
    """
    if sum(bool(one) for one in (nodes, gpus, on)) != 1:
        raise UsageError("nothing is named to reserve", where="reserve", fix="give one of --nodes N, --gpus N and --on NODE")
    length = seconds(lasts, "--for")
    start = None if begins == "now" else wall_time(begins, time.time())
    with connect(home) as client:
        answer = client.reserve(
            length, start=start, nodes=nodes, gpus=gpus, places=on or (), name=name, users=user or (), queues=queue or ()
        )
    print(answer["name"])
    say(f"note: {', '.join(answer['places'])} from {moment(answer['start'])} to {moment(answer['end'])}")


@reserve_app.command
def cancel(name: str, /, *, home: HomeOption = None) -> None:
    """Give a window up, or end it before its time.

    Args:
        name: A name from 'gantline get reservations'.
    """
    with connect(home) as client:
        client.cancel_reservation(name)
    print(name)


@reserve_app.command(name="list")
def list_reservations(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List windows that have not ended."""
    reservations(home=home, output=output)


def wall_time(text: str, now: float) -> float:
    """Seconds since 1970 of an instant as people write it; a time of day is the next one, in this machine's zone."""
    if text.startswith("+"):
        return now + seconds(text[1:], "--from")
    here = datetime.fromtimestamp(now).astimezone()
    try:
        if ":" in text and "-" not in text:
            clock = datetime.strptime(text, "%H:%M").time()
            found = datetime.combine(here.date(), clock).astimezone()
            return (found if found > here else datetime.combine(here.date() + timedelta(days=1), clock).astimezone()).timestamp()
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"'{text}' is not a time", where="--from", fix=_FIX) from None


# ``gantline queue list|set|drop``: how many devices a queue may have.

queue_app = App(name="queue")
Name = Annotated[str, Parameter(help="A queue, such as research/nlp.")]


@queue_app.command(name="list")
def list_queues(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List queues with their quotas and what they hold."""
    queues(home=home, output=output)


@queue_app.command(name="set")
def set_queue(
    name: Name,
    /,
    *,
    home: HomeOption = None,
    quota: float | None = None,
    borrow: float = 0.0,
    weight: float = 1.0,
) -> None:
    """Make a queue, or change it: jobs that would exceed what it may hold wait, with the reason reported.

    Args:
        quota: How many devices it is promised, with the queues below it; by default no quota.
        borrow: How many more it may borrow while others leave theirs idle; inf: no limit; by default none.
        weight: Its weight, for policies that share by weight.
    """
    with connect(home) as client:
        client.set_queue(name, quota=quota, borrow=borrow, weight=weight)
    print(f"queue '{name}' {bounds_in_words(math.inf if quota is None else quota, borrow)}")


@queue_app.command
def drop(name: Name, /, *, home: HomeOption = None) -> None:
    """Take a queue away; its jobs stay, and nothing bounds them."""
    with connect(home) as client:
        client.drop_queue(name)
    print(name)
