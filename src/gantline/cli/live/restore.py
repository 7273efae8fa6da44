"""``gantline restore FILE``: back to a backup."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, need_libraries

app = App(
    name="restore",
    help_epilogue="""The service must not run. Whatever happened since the backup is lost: jobs that were submitted later, what
became of the others, queues and tokens; a token that was revoked since is valid again. The store that is there is set aside. The next
'gantline up' stops what still runs, starts the jobs that ran again from what they have saved, and never gives a number out twice.""",
)
_SHOWN = 20


@app.default
def restore(
    file: Annotated[Path, Parameter(help="What 'gantline backup' has written.")],
    /,
    *,
    home: HomeOption = None,
    store: Annotated[str, Parameter(help="Another file than that in the home, as for 'gantline up'.")] = "",
) -> None:
    """Put a backup in the place of the store, and say what is lost."""
    need_libraries()
    from gantline.live.service.home import Home
    from gantline.live.service.repair import restore as put_back

    found = put_back(Home.find(home), file, store or os.environ.get("GANTLINE_STORE", ""))
    say(f"note: the store has the {found.jobs} jobs of the backup; new ones have numbers from {found.newest + 1} on")
    if found.aside:
        say(f"note: the store that was there is {found.aside}")
    if found.lost:
        say(f"warning: lost, because they were submitted later: {_listed(found.lost)}; their folders stay")
    if found.open:
        say(f"warning: had not ended when the backup was made, and wait or run again: {_listed(found.open)}")
    if found.running:
        say(f"warning: still run, and are stopped by the next 'gantline up': {_listed(found.running)}")
    say("warning: tokens that were revoked since the backup are valid again, those made since are not: see 'gantline token list'")


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
