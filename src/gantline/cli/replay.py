"""``gantline replay``: a recorded run folded through its policy again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import Settings, settings_of
from gantline.cli.console import say, show_object
from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.drivers.replay_check import Replayed

app = App(
    name="replay",
    help_epilogue="""Write a record with 'gantline simulate ... --record run.jsonl.gz'; the folder of a service is one.
Exit code 1: a plan differs; the first is shown.""",
)


@app.default
def replay(
    record: Annotated[Path, Parameter(help="A record of decisions (JSON lines, .gz allowed), or the folder of a service.")],
    /,
    *,
    policy: Annotated[str, Parameter(help="The policy, if it is no longer found by the name in the record.")] = "",
    set_: Settings = None,
    store: Annotated[str, Parameter(help="The database of the service, where it is not the file in its folder.")] = "",
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="Lines for people, or JSON.")] = "table",
) -> int:
    """Fold a recorded run through its policy again: the plans must be the same."""
    from gantline.core.policy import build
    from gantline.files.policies import policy_class
    from gantline.simulator.replay import read_record
    from gantline.simulator.replay import replay as fold

    if record.is_dir():
        return _live(record, store, output)
    if store:
        raise UsageError("only a service has one", where="--store", fix="name the folder of the service, not a file")
    found = read_record(record)
    name = policy or str(found.about["policy"])
    result = fold(found, build(policy_class(name), {**found.settings, **settings_of(set_)}))
    return _report({"policy": name}, result, output)


def _live(home: Path, url: str, output: str) -> int:
    from gantline.cli.live.connection import need_libraries

    need_libraries()
    from gantline.core.errors import NotFoundError
    from gantline.runtime.archive import Archive
    from gantline.runtime.replay import replay_store
    from gantline.runtime.store import SqlStore
    from gantline.service.home import Home

    where = url or os.environ.get("GANTLINE_STORE", "") or Home(home).store
    if isinstance(where, Path) and not where.is_file():
        raise NotFoundError(
            "holds no store of a service", where=str(home), fix="name a file, or the folder that gantline up --home was given"
        )
    store = SqlStore.open(where, write=False)
    try:
        result = replay_store(store, Archive(Home(home).archive))
    finally:
        store.close()
    return _report({"home": str(home)}, result, output)


def _report(about: dict[str, str], result: Replayed, output: str) -> int:
    difference = result.difference
    shown = {**about, "decisions": result.decisions, "same": difference is None, "difference": str(difference or "")}
    shown |= {"open": result.open} if result.open else {}
    shown |= {"not kept": result.before} if result.before else {}
    shown |= {"left out": result.left_out} if result.left_out else {}
    show_object(shown, output)
    if result.before:
        say(f"note: the store was compacted: its record begins after decision {result.before}")
    if difference is not None:
        say(f"error: the replay differs from the record at {difference}")
        return 1
    return 0
