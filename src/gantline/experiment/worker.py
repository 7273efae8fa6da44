"""The loop of a worker process: a task per line on stdin, an outcome per line on what was stdout."""

from __future__ import annotations

import json
import os
import sys

from gantline._alarm import may_be_ended
from gantline.experiment.task import Task, perform
from gantline.experiment.workers import encode


def main() -> None:
    """Answer tasks until stdin ends. What a policy prints goes to stderr, because stdout belongs to the answers."""
    may_be_ended(sys.stderr.buffer)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            answer = encode(perform(Task.read(json.loads(line))))
            try:
                answers.write(answer)
                answers.flush()
            except BrokenPipeError:
                os._exit(1)  # the sweep was killed; what is done is stored, and nobody is left to be told


if __name__ == "__main__":
    main()
