"""``gantline replay``: a recorded run folded through its policy again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import Settings, settings_of
from gantline.cli.console import say, show_object

app = App(
    name="replay",
    help_epilogue="Write a record with 'gantline simulate ... --record run.jsonl.gz'. Exit code 1: a plan differs; the first is shown.",
)


@app.default
def replay(
    record: Annotated[Path, Parameter(help="A record of decisions (JSON lines, .gz allowed).")],
    /,
    *,
    policy: Annotated[str, Parameter(help="The policy, if it is no longer found by the name in the record.")] = "",
    set_: Settings = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="Lines for people, or JSON.")] = "table",
) -> int:
    """Fold a recorded run through its policy again: the plans must be the same."""
    from gantline.core.policy import build
    from gantline.files.policies import policy_class
    from gantline.simulator.replay import read_record
    from gantline.simulator.replay import replay as fold

    found = read_record(record)
    name = policy or str(found.about["policy"])
    result = fold(found, build(policy_class(name), {**found.settings, **settings_of(set_)}))
    difference = result.difference
    told = {"policy": name, "decisions": result.decisions, "same": difference is None, "difference": str(difference or "")}
    show_object(told, output)
    if difference is not None:
        say(f"error: the replay parts from the record at {difference}")
        return 1
    return 0
