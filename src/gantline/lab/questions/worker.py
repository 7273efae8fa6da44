"""A process that answers one question per line, so that the scheduler is not delayed, and an answer that takes too long can be ended.

``python -m gantline.lab.questions.worker`` reads JSON lines and writes JSON lines, each an ``answer`` or an
``error`` (kind, what, where, fix).
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TextIO

from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UsageError
from gantline.lab.questions.asked import answer


def kind_of(error: GantlineError) -> str:
    """What kind of refusal it is, as text."""
    return "not-found" if isinstance(error, NotFoundError) else "refused" if isinstance(error, RefusedError) else "usage"


def refusal(error: dict[str, str]) -> GantlineError:
    """The exception that an ``error`` stands for."""
    kind = {"not-found": NotFoundError, "refused": RefusedError}.get(error["kind"], UsageError)
    return kind(error["what"], where=error["where"], fix=error["fix"])


def answer_line(line: str, decoded: dict[str, object] | None = None) -> dict[str, object]:
    """The answer to one line; `decoded` holds the snapshot of the last question, under the name that the question gave it."""
    try:
        return {"answer": answer(json.loads(line), decoded)}
    except GantlineError as error:
        return {"error": {"kind": kind_of(error), "what": error.what, "where": error.where, "fix": error.fix}}
    except Exception as error:  # a user's policy may raise anything
        return {"error": {"kind": "refused", "what": f"no answer: {type(error).__name__}: {error}", "where": "question", "fix": ""}}


def main(source: TextIO, target: TextIO) -> None:
    """Answer until the input ends."""
    decoded: dict[str, object] = {}
    for line in source:
        target.write(json.dumps(answer_line(line, decoded)) + "\n")
        target.flush()


if __name__ == "__main__":
    output = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # what a policy prints must not mix with answers
        main(sys.stdin, output)
