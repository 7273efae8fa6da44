"""``gantline queue list|set|drop``: how many devices a queue may have."""

from __future__ import annotations

import math
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.get import queues
from gantline.cli.live.sheets import WideForm
from gantline.core.queues import bounds_in_words

app = App(name="queue")
Name = Annotated[str, Parameter(help="A queue, such as research/nlp.")]


@app.command(name="list")
def list_queues(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List queues with their quotas and what they hold."""
    queues(home=home, output=output)


@app.command(name="set")
def set_queue(
    name: Name,
    /,
    *,
    home: HomeOption = None,
    quota: Annotated[
        float | None, Parameter(help="How many devices it is promised, with the queues below it; by default no quota.")
    ] = None,
    borrow: Annotated[
        float, Parameter(help="How many more it may borrow while others leave theirs idle; inf: no limit; by default none.")
    ] = 0.0,
    weight: Annotated[float, Parameter(help="Its weight, for policies that share by weight.")] = 1.0,
) -> None:
    """Make a queue, or change it: jobs that would exceed what it may hold wait, with the reason reported."""
    with connect(home) as client:
        client.set_queue(name, quota=quota, borrow=borrow, weight=weight)
    print(f"queue '{name}' {bounds_in_words(math.inf if quota is None else quota, borrow)}")


@app.command
def drop(name: Name, /, *, home: HomeOption = None) -> None:
    """Take a queue away; its jobs stay, and nothing bounds them."""
    with connect(home) as client:
        client.drop_queue(name)
    print(name)
