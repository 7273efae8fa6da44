"""``gantline view``: finished simulations in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import is_watched, say
from gantline.cli.live.connection import need_libraries
from gantline.cli.live.dashboard import open_page

app = App(
    name="view",
    help_epilogue="""Examples:

  gantline simulate jobs.csv --cluster 8x8 --policy srtf --out runs/srtf
  gantline view runs""",
)


@app.default
def view(
    folder: Annotated[Path, Parameter(help="A run, a sweep, or a folder that holds such, at any depth.")],
    /,
    *,
    port: Annotated[int | None, Parameter(help="Where to listen, on this machine alone. By default anywhere.")] = None,
    browser: Annotated[bool | None, Parameter(name="--open", help="Open it in a browser; by default where a person watches.")] = None,
) -> None:
    """Show finished simulations on the pages of the dashboard, until Ctrl-C."""
    need_libraries()
    from gantline.live.service.results.viewing import view_server
    from gantline.traces.files.python_file import only_given

    found = view_server(folder, port)
    print(found.url, flush=True)
    say("note: the address logs one browser in, within five minutes; Ctrl-C ends it")
    if browser if browser is not None else is_watched():
        open_page(found.url)
    with only_given():  # the results may be somebody else's
        found.run()
