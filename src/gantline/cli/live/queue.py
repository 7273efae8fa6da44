"""``gantline queue list|set|drop``: how many devices a queue may have."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.get import queues
from gantline.cli.live.sheets import WideForm

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
    quota: Annotated[float | None, Parameter(help="How many devices its jobs may ask for at once; by default no bound.")] = None,
    weight: Annotated[float, Parameter(help="Its weight, for policies that share by weight.")] = 1.0,
) -> None:
    """Bound a queue: jobs that would exceed the quota wait, with the reason told."""
    with connect(home) as client:
        client.set_queue(name, quota=quota, weight=weight)
    print(name)


@app.command
def drop(name: Name, /, *, home: HomeOption = None) -> None:
    """Take a queue's bounds away."""
    with connect(home) as client:
        client.drop_queue(name)
    print(name)
