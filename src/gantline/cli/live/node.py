"""``gantline node cordon|drain|uncordon``: whether a node, or one of its devices, takes new jobs."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, connect

app = App(name="node")
Names = Annotated[str, Parameter(name="NODE", help="Names from 'gantline get nodes', or devices of them: cpu:2.")]


@app.command
def cordon(first: Names, /, *more: Names, home: HomeOption = None) -> None:
    """Let no new jobs come; those that are there stay."""
    with connect(home) as client:
        client.cordon(first, *more)
    print(first, *more, sep="\n")


@app.command
def drain(first: Names, /, *more: Names, home: HomeOption = None) -> None:
    """Let no new jobs come, and stop and save those that are there; they wait for other devices."""
    with connect(home) as client:
        answer = client.drain(first, *more)
    print(first, *more, sep="\n")
    say(f"note: {len(answer['jobs'])} job{'s' if len(answer['jobs']) != 1 else ''} asked to leave")


@app.command
def uncordon(first: Names, /, *more: Names, home: HomeOption = None) -> None:
    """Let jobs come again."""
    with connect(home) as client:
        client.uncordon(first, *more)
    print(first, *more, sep="\n")
