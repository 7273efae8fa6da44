"""``gantline node cordon|drain|uncordon``: who may still come to a node, or to one of its devices."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, connect

app = App(name="node")
Name = Annotated[str, Parameter(help="A name from 'gantline get nodes', or a device of it: cpu:2.")]


@app.command
def cordon(name: Name, /, *, home: HomeOption = None) -> None:
    """Let nobody new come; whoever is there stays."""
    with connect(home) as client:
        client.cordon(name)
    print(name)


@app.command
def drain(name: Name, /, *, home: HomeOption = None) -> None:
    """Let nobody new come, and stop and save whoever is there; they wait for other devices."""
    with connect(home) as client:
        answer = client.drain(name)
    print(name)
    say(f"note: {len(answer['jobs'])} job{'s' if len(answer['jobs']) != 1 else ''} asked to leave")


@app.command
def uncordon(name: Name, /, *, home: HomeOption = None) -> None:
    """Let jobs come again."""
    with connect(home) as client:
        client.uncordon(name)
    print(name)
