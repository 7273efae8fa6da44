"""``gantline dashboard``: the web page of a service in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import is_watched, say
from gantline.cli.live.connection import HomeOption, connect, need_libraries
from gantline.traces.files.python_file import only_given

dashboard_app = App(name="dashboard")


@dashboard_app.default
def dashboard(
    *,
    home: HomeOption = None,
    browser: Annotated[bool | None, Parameter(name="--open", negative="--no-open")] = None,
) -> None:
    """Print the address of the service's web page, with a code that logs in once, and open it.

    Args:
        browser: Open it in a browser; by default where a person watches.
    """
    with connect(home) as client:
        url = client.login_code()["url"]
    print(url, flush=True)
    say("note: the address logs one browser in, within five minutes; run the command again for another")
    if browser if browser is not None else is_watched():
        open_page(url)


def open_page(url: str) -> None:
    """Open a page where there is a browser; the address was printed in any case."""
    try:
        opened = webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    if not opened:
        say("note: no browser was found here: open the address in one")


# ``gantline view``: finished simulations in a browser.

view_app = App(
    name="view",
    help_epilogue="""Examples:

  gantline simulate jobs.csv --cluster 8x8 --policy srtf --out runs/srtf
  gantline view runs""",
)


@view_app.default
def view(
    folder: Path,
    /,
    *,
    port: int | None = None,
    browser: Annotated[bool | None, Parameter(name="--open", negative="--no-open")] = None,
) -> None:
    """Show finished simulations on the pages of the dashboard, until Ctrl-C.

    Args:
        folder: A run, a sweep, or a folder that holds such, at any depth.
        port: Where to listen, on this machine alone. By default anywhere.
        browser: Open it in a browser; by default where a person watches.
    """
    need_libraries()
    from gantline.live.service.viewer import view_server

    found = view_server(folder, port)
    print(found.url, flush=True)
    say("note: the address logs one browser in, within five minutes; Ctrl-C ends it")
    if browser if browser is not None else is_watched():
        open_page(found.url)
    with only_given():  # the results may be somebody else's
        found.run()
