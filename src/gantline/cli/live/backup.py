"""``gantline backup FILE``: a copy of the store, made while the service runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, need_libraries

app = App(
    name="backup",
    help_epilogue="""The copy has jobs, journal, events, queues and the hashes of tokens, as they were at one instant. 'gantline restore'
goes back to it. Folders of jobs (their output and checkpoints) and the archive are not in it.""",
)


@app.default
def backup(
    file: Annotated[Path, Parameter(help="The new file.")],
    /,
    *,
    home: HomeOption = None,
    store: Annotated[str, Parameter(help="Another database than the file in the home, as for 'gantline up'.")] = "",
) -> None:
    """Copy the store of a service into a file; the service goes on meanwhile."""
    need_libraries()
    from gantline.live.service.home import Home
    from gantline.live.store.connection import back_up

    size = back_up(store or os.environ.get("GANTLINE_STORE", "") or Home.find(home).store, file)
    print(file)
    say(f"note: {size / 1e6:.1f} MB")
