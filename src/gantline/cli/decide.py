"""``gantline decide``: one snapshot file in, one plan and its reasons out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import PolicyName, Settings, settings_of
from gantline.cli.console import Sheet, say, show, show_json
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.fields import human_seconds
from gantline.core.json_reader import loads
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_plan
from gantline.engine.assembly.guard import guard_of
from gantline.engine.assembly.run_rules import rule_of_run
from gantline.engine.policy_failures import describe_error
from gantline.simulator.roll_forward import JobOutcome, carry_out
from gantline.traces.files.policies import code_named, load_policy, placement_of
from gantline.traces.files.python_file import only_given

app = App(
    name="decide",
    help_epilogue="""A snapshot needs little: {"now": 600, "cluster": "2x4", "jobs": [{"id": "a", "devices": [0]}, {"id": "b"}]}

docs/snapshots.md lists every field.""",
)


@app.default
def decide(
    snapshot: Path,
    /,
    *,
    policy: PolicyName,
    set_: Settings = None,
    placement: str | None = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table",
) -> int:
    """Ask a policy for one decision from one snapshot file, and say what would happen.

    Args:
        snapshot: A JSON file, written by hand, or a line of 'gantline simulate --record'.
        placement: Which devices: first-free, consolidated[:preferred], ... By default as the snapshot says.
        output: A table for people, or JSON.
    """
    chosen = load_policy(policy, settings_of(set_))
    guard: Callable[[Callable[[], Plan]], Plan] | None = guard_of(chosen, None)
    document = read_json(snapshot)
    instant = decode_snapshot(document.get("snapshot", document) if isinstance(document, dict) else document)
    with only_given(code_named(placement)):  # the file may be somebody else's
        rule = placement_of(placement or rule_of_run(instant))
    try:
        plan = chosen.decide(instant) if guard is None else guard(lambda: chosen.decide(instant))
        outcomes = carry_out(instant, plan, rule)
    except (UsageError, NotFoundError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit() too
        raise RefusedError(f"policy '{policy}' gave no valid plan: {describe_error(chosen, error)}", where=str(snapshot)) from error
    if output == "json":
        show_json(_as_json(instant, plan, outcomes))
        return 0
    ranks = plan.ranking.key.tolist() if plan.ranking is not None else [math.nan] * len(outcomes)
    by_rank = sorted(range(len(outcomes)), key=lambda place: (ranks[place], place)) if plan.ranking is not None else range(len(outcomes))
    rows = [(outcomes[k].job, ranks[k], outcomes[k].act, list(outcomes[k].devices), outcomes[k].why) for k in by_rank]
    show(Sheet.of("job rank act devices why", rows), "table")
    _show_plan(instant, plan)
    return 0


def read_json(path: Path) -> Any:
    """The value in a JSON file."""
    if path.exists() and not (path.is_file() or _is_given_open(path)):
        raise UsageError("is not a file", where=str(path), fix="a snapshot is a JSON file")
    try:
        return loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(path)) from None
    except UnicodeDecodeError:
        raise UsageError("is not text", where=str(path), fix="a snapshot is a JSON file") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"is not JSON: {error.msg}", where=f"{path}:{error.lineno}:{error.colno}") from None


def _is_given_open(path: Path) -> bool:
    """Whether it is an open file of this process, as a shell names a pipe: `<(...)`, /dev/stdin."""
    return path.parts[:2] in (("/", "dev"), ("/", "proc")) and path.is_fifo()


def _as_json(instant: Snapshot, plan: Plan, outcomes: list[JobOutcome]) -> dict[str, Any]:
    entries = [{"job": one.job, "act": one.act, "devices": one.devices, "why": one.why} for one in outcomes]
    return {"now": instant.now, "jobs": instant.jobs.ids, "plan": encode_plan(plan), "outcome": entries}


def _show_plan(instant: Snapshot, plan: Plan) -> None:
    """Print what a plan holds beyond which jobs run."""
    ids = instant.jobs.ids
    for one in plan.reservations:
        whose = f"job '{ids[one.job]}'" if one.job >= 0 else "no particular job"
        say(f"note: {one.gpus} GPUs are reserved for {whose} in {human_seconds(one.start - instant.now)}")
    for no in plan.refusals:
        offer = ", ".join(f"{key}={value:g}" for key, value in no.offer.items())
        say(f"note: job '{ids[no.job]}' is refused: {no.why}" + (f"; it would accept {offer}" if offer else ""))
    if plan.valid_until is None:
        say("note: the answer holds until the next round")
    elif math.isfinite(plan.valid_until):
        say(f"note: if nothing happens, the answer holds for {human_seconds(plan.valid_until - instant.now)}")
