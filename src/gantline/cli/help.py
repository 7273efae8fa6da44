"""``gantline help [GROUP]``: the commands of a group with those below them."""

from __future__ import annotations

import re
from textwrap import shorten

from cyclopts import App

from gantline.cli.main import GROUPS
from gantline.cli.main import app as program
from gantline.core.errors import NotFoundError, near

app = App(name="help")
_NAMES, _LINE = 14, 80  # characters


@app.default
def show_help(topic: str = "", /) -> None:
    """List the commands of a group with those below them.

    Args:
        topic: A group (runs, traces, ask, jobs, operate) or a command.
    """
    if not topic or topic in program:
        program.help_print([topic] if topic else [])
        return
    if topic not in GROUPS:
        raise NotFoundError(f"no group or command '{topic}'", where="help", fix=near(topic, [*GROUPS, *program]))
    title, commands = GROUPS[topic]
    print(title)
    for name, (_, text) in commands.items():
        command = program[name]
        print(f"  {name:{_NAMES}}{text}")
        for below in (each for each in command if not each.startswith("-")):
            says = shorten(_first_sentence(command[below].help), _LINE - _NAMES - 2, placeholder=" ...")
            print(f"    {below:{_NAMES - 2}}{says}")
    print("'gantline COMMAND --help' says more of one.")


def _first_sentence(text: str) -> str:
    return re.split(r"[.:;](?: |$)", " ".join(text.split("\n\n")[0].split()))[0]
