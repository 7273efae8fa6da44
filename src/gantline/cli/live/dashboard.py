"""``gantline dashboard``: the web page of a service in a browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import is_watched, say
from gantline.cli.live.connection import HomeOption, connect

app = App(name="dashboard")


@app.default
def dashboard(
    *,
    home: HomeOption = None,
    browser: Annotated[bool | None, Parameter(name="--open", help="Open it in a browser; by default where a person watches.")] = None,
) -> None:
    """Print the address of the service's web page, with a code that logs in once, and open it."""
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
