"""``gantline replay``: a recorded run folded through its policy again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import Settings, settings_of
from gantline.cli.console import say, show_json, show_object
from gantline.cli.live.connection import need_libraries
from gantline.core.errors import NotFoundError, UsageError
from gantline.engine.drivers.journal import Replayed
from gantline.lab.questions.validity import clock_error
from gantline.live.scheduler.archive import Archive
from gantline.live.scheduler.replay import RecordedRun, replay_store
from gantline.live.service.home import Home
from gantline.simulator.replay import read_record
from gantline.simulator.replay import replay as fold
from gantline.traces.files.policies import code_named, load_policy, opened
from gantline.traces.files.python_file import GivenCode, only_given
from gantline.traces.files.speeds import read_bundle

app = App(
    name="replay",
    help_epilogue="""Write a record with 'gantline simulate ... --record run.jsonl.gz'; the folder of a service is one.
Exit code 1: a plan differs; the first is shown. --times compares when the jobs of a service ended with when they end on
the simulated clock, under the very orders that were given.""",
)


@app.default
def replay(
    record: Path,
    /,
    *,
    policy: list[str] | None = None,
    placement: str = "",
    performance: str = "",
    set_: Settings = None,
    times: bool = False,
    profiles: Path | None = None,
    draws: int | None = None,
    store: str = "",
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table",
) -> int:
    """Fold a recorded run through its policy again: the plans must be the same.

    Args:
        record: A record of decisions (JSON lines, .gz allowed), or the folder of a service.
        policy: The policy, where the record names a file: code is loaded from here alone; may be repeated for a
            service.
        times: Give the orders of a service again, with times as profiled: the error of the simulated clock.
        store: The database of the service, where it is not the file in its folder.
        placement: The placement rule, where the record names a file.
        performance: The performance model, where the record names a file.
        profiles: With --times: these profiles, not those of the service.
        draws: With --times: how often times are drawn, 200 where profiles have a spread.
        output: Lines for people, or JSON.
    """
    policies = tuple(policy or ())
    if not times and (profiles is not None or draws is not None):
        name = "--profiles" if profiles is not None else "--draws"
        raise UsageError("plans are the same whatever the times", where=name, fix="add --times")
    if draws is not None and draws < 1:
        raise UsageError(f"{draws} draws", where="--draws", fix="one or more")
    if record.is_dir():
        if set_:
            raise UsageError("a service keeps its parameters in its record", where="--set", fix="leave it out")
        code = code_named(*policies, placement, performance)
        return _times(record, store, profiles, draws, code, output) if times else _live(record, store, code, output)
    if times:
        raise UsageError("a simulated run has no measured times", where="--times", fix="name the folder of a service")
    if store:
        raise UsageError("only a service has one", where="--store", fix="name the folder of the service, not a file")
    if len(policies) > 1:
        raise UsageError("one policy decides in a simulated run", where="--policy", fix="name one")
    return _simulated(record, policies[0] if policies else "", placement, performance, settings_of(set_), output)


def _simulated(path: Path, policy: str, placement: str, performance: str, settings: dict[str, str], output: str) -> int:
    found = read_record(path)
    name, kept = opened(policy)
    code = GivenCode(tuple(filter(None, (name, placement, performance))), {name})
    with only_given(code):
        chosen = load_policy(name or found.policy, {**found.settings, **kept, **settings})
    result = fold(found, chosen, code=code)
    for one in code.unused:
        raise UsageError(f"the record names no '{one}'", where=str(path), fix="leave it out")
    return _report({"policy": policy or found.policy}, result, output)


def _live(home: Path, url: str, code: GivenCode, output: str) -> int:
    return _report({"home": str(home)}, fold_home(home, url, code=code), output)


def _times(home: Path, url: str, profiles: Path | None, draws: int | None, code: GivenCode, output: str) -> int:
    need_libraries()
    run = RecordedRun()
    result = fold_home(home, url, run, code)
    if result.difference is not None:
        return _report({"home": str(home)}, result, output)
    where = str(profiles or run.profiles)
    if not where or run.cluster is None:
        raise UsageError("the service had no profiles", where="--times", fix="name some: --profiles profiles.json")
    found = clock_error(run.jobs.values(), run.orders, run.ends, run.cluster, read_bundle(where), draws)
    if output == "json":
        show_json(found.as_json())
    else:
        print("\n".join(found.lines()))
    return 0


def fold_home(home: Path, url: str = "", run: RecordedRun | None = None, code: GivenCode | None = None) -> Replayed:
    """Fold the record of the service with that folder again; a `run` is filled with its jobs and orders.

    `code`: what the record may name of Python code; no other is loaded.
    """
    need_libraries()
    from gantline.live.store import SqlStore

    where = url or os.environ.get("GANTLINE_STORE", "") or Home(home).store
    if isinstance(where, Path) and not where.is_file():
        raise NotFoundError(
            "holds no store of a service", where=str(home), fix="name a file, or the folder that gantline up --home was given"
        )
    store = SqlStore.open(where, write=False)
    try:
        found = replay_store(store, Archive(Home(home).archive), run, code)
    finally:
        store.close()
    if code is not None and code.names and not code.used:
        raise UsageError(f"the record names no '{code.names[0]}'", where=str(home), fix="leave it out")
    return found


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
