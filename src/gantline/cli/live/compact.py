"""``gantline compact``: a smaller store."""

from __future__ import annotations

from cyclopts import App

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, connect

app = App(
    name="compact",
    help_epilogue="""The record of decisions is kept from the third newest checkpoint on, and 'gantline replay' begins there. A service
that was started with --keep does the same by itself whenever jobs have been archived. Jobs at hand, queues and tokens stay.""",
)


@app.default
def compact(*, home: HomeOption = None) -> None:
    """Archive the jobs that are due, and give up what the store of the service does not need any more."""
    with connect(home) as client:
        found = client.compact()
    say(f"note: {found['archived']} jobs were archived")
    if found["before"] is not None:
        say(f"note: the store has {found['after'] / 1e6:.1f} MB, and had {found['before'] / 1e6:.1f}")
