"""What the commands ``explain``, ``forecast`` and ``what-if`` share: a question about a file, or about the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from gantline.cli.arguments import settings_of
from gantline.cli.console import show_json
from gantline.core.errors import UsageError

SnapshotFile = Annotated[Path | None, Parameter(help="Ask about this file (docs/snapshots.md) instead of the service.", show_default=False)]
Present = Annotated[str, Parameter(help="The policy in force, where a file is asked about.", show_default=False)]
PresentSettings = Annotated[list[str] | None, Parameter(negative="", help="A parameter of the policy in force, key=value.")]
Placement = Annotated[str, Parameter(help="Which devices, where a file is asked about: first-free, consolidated, ...")]
Samples = Annotated[int, Parameter(help="How often the present is rolled forward.")]
Sigma = Annotated[float, Parameter(help="How far work may be from its estimate: sigma of a log-normal, where nothing better is known.")]
Answer = Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"], help="Words for people, or JSON.")]


def about_file(
    ask: str,
    snapshot: Path,
    policy: str,
    settings: list[str] | None,
    placement: str,
    samples: int,
    sigma: float,
    **more: Any,
) -> dict[str, Any]:
    """The answer to a question about a snapshot in a file."""
    from gantline.cli.decide import read_json
    from gantline.questions.asked import answer

    if not policy:
        raise UsageError("a file does not say which policy is in force", where="--snapshot", fix="add --present NAME")
    document = read_json(snapshot)
    instant = document.get("snapshot", document) if isinstance(document, dict) else document
    question = {"ask": ask, "snapshot": instant, "policy": policy, "settings": settings_of(settings), "placement": placement}
    return answer({**question, "samples": samples, "sigma": sigma, **more})


def show_answer(found: dict[str, Any], form: str) -> int:
    """Print it."""
    if form == "json":
        show_json({key: value for key, value in found.items() if key != "lines"})
    else:
        print("\n".join(found["lines"]))
    return 0
