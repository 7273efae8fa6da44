"""``gantline repair``: a store that a service cannot start from."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Form, say
from gantline.cli.live.connection import HomeOption, need_libraries
from gantline.cli.live.sheets import show_rows

app = App(
    name="repair",
    help_epilogue="""The service must not run. Nothing is thrown away: what is set aside stays in the store, and 'gantline status' lists it.
Exit code 4: something was found that cannot be mended here.""",
)


@app.default
def repair(
    *,
    home: HomeOption = None,
    store: Annotated[str, Parameter(help="Another database than the file in the home, as for 'gantline up'.")] = "",
    dry_run: Annotated[bool, Parameter(negative="", help="Say what would be done, and do nothing.")] = False,
    output: Form = "table",
) -> int:
    """Find what keeps a service from starting, set it aside and say so."""
    need_libraries()
    from gantline.live.service.home import Home
    from gantline.live.service.repair import mend

    found = mend(Home.find(home), store or os.environ.get("GANTLINE_STORE", ""), dry_run=dry_run)
    if not found:
        say("note: nothing to repair")
        return 0
    show_rows([{"where": one.where, "found": one.what, "done": one.done or "nothing: see docs/live.md"} for one in found], output, "where")
    if dry_run:
        say("note: nothing was changed")
    return 0 if all(one.done for one in found) else 4
