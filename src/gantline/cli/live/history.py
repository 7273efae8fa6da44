"""``gantline history``: the past of a service as a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import csv_text, say, write
from gantline.cli.live.connection import HomeOption, connect
from gantline.core.errors import RefusedError

app = App(
    name="history",
    help_epilogue="""What such a trace cannot hold is said beside it. Examples:

  gantline history past.csv
  gantline simulate past.csv --cluster 1x4 --policy srtf
  gantline what-if --policy srtf --past""",
)


@app.default
def history(
    out: Annotated[Path | None, Parameter(help="Where to write; without it, CSV goes to stdout.")] = None, /, *, home: HomeOption = None
) -> int:
    """Write the jobs that have succeeded as a trace: arrival, devices, duration, and when they really started and ended."""
    with connect(home) as client:
        answer = client.history()
    rows = answer["jobs"]
    if not rows:
        raise RefusedError("no job has succeeded yet", where="history", fix="ask again later")
    text = csv_text(list(rows[0]), [list(row.values()) for row in rows])
    if out is None:
        write(text)
    else:
        draft = out.with_name(out.name + ".part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(out)
        say(f"note: {len(rows)} jobs in {out}")
    for limit in answer["limits"]:
        say(f"note: {limit}")
    return 0
