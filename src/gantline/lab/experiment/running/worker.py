"""The loop of a worker process: a task per line on stdin, an outcome per line on what was stdout."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from threading import Thread
from typing import IO, TextIO

from gantline._alarm import may_be_ended
from gantline.lab.experiment.running.tasks import Task, perform

_LOOK = 1.0  # seconds


def answer_tasks(tasks: Iterable[str], answers: TextIO, crash_report: IO[bytes]) -> None:
    """Answer tasks until there are no more. Where a policy crashed, or could not be interrupted, is written to `crash_report`."""
    may_be_ended(crash_report)
    faulthandler.enable(crash_report)
    try:
        for line in tasks:
            answers.write(perform(Task.read(json.loads(line))).to_line())
            answers.flush()
    except ConnectionError:
        os._exit(1)  # the sweep was killed; what is done is stored, and no process is left to report to


def end_with(parent: int) -> None:
    """End this process soon after its parent, should that be killed in the middle of a run."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Answer tasks from stdin. What a policy prints goes to stderr, because stdout belongs to the answers."""
    Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers, open(int(sys.argv[1]), "wb", buffering=0) as crash_report:
        os.dup2(2, 1)
        answer_tasks(sys.stdin, answers, crash_report)


if __name__ == "__main__":
    main()
