"""Lives of a service that end by kill -9: each is a forked process with a scheduler, a store and a script of requests.

Jobs check the promises from inside: whoever starts takes a folder named after its device, and finds it taken only if somebody is there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.live.specs import ENDED, Spec, replays, shell, until

from gantline.core.errors import RefusedError
from gantline.core.inputs import Action
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.store import SqlStore


def careful(home: Path, line: str) -> str:
    """The line, run by somebody who notices when its device is somebody else's."""
    taken = f"{home}/taken.$GANTLINE_DEVICES"
    who = "$GANTLINE_JOB_ID $GANTLINE_EPOCH"
    leave = f"trap 'rmdir {taken}; exit 15' TERM"  # first: it may be told to stop before it has got anywhere
    # A mkdir which the signal itself ends finds nothing taken.
    enter = f"echo {who} >> {home}/began; mkdir {taken} || [ ! -d {taken} ] || echo {who} >> {home}/breaches"
    # In the shell itself: one in between might receive the signal before it has let go of the trap, and never end.
    return f"{leave}; {enter}; {{ {line}; }}; code=$?; rmdir {taken}; exit $code"


def script(home: Path) -> dict[str, Spec]:
    """Requests by their id."""
    return {
        "fails": shell(careful(home, "[ $RESTART_COUNT -gt 0 ]"), retries=1, backoff=0.02),
        "victim": shell(careful(home, "sleep 1000 & wait")),
    }


def live(home: Path, kill_at: int = 0) -> int:
    """One life; how it ended. `kill_at`: at the so-manieth time that the store is about to commit, or has; 0: never."""
    child = os.fork()
    if child == 0:
        try:
            live_here(home, kill_at)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return status


def live_here(home: Path, kill_at: int = 0) -> None:
    """A life in this process."""
    seen = 0

    def observe(when: str) -> None:
        nonlocal seen
        seen += 1
        (home / "commits").write_text(str(seen))
        if seen == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    store = SqlStore.open(home / "gantline.sqlite")
    store.observe = observe
    scheduler = Scheduler(store, LocalRunner(home, "cpu:1"), "fifo", checkpoint_every=8)
    scheduler.start()
    known = {}
    for request, spec in script(home).items():
        (known[request],) = scheduler.submit(spec, "ann", request)
        with open(home / "acknowledged", "a", encoding="utf-8") as file:
            print(request, known[request], file=file, flush=True)
    (known["after"],) = scheduler.submit(shell(careful(home, "true"), after=((known["fails"], "ok"),)), "ann", "after")
    until(lambda: scheduler.view().jobs[known["victim"]].state == "running" or scheduler.view().jobs[known["victim"]].state in ENDED)
    with contextlib.suppress(RefusedError):  # a life before this one may have cancelled it
        scheduler.request([known["victim"]], Action.CANCEL)
    until(lambda: all(scheduler.view().jobs[job].state in ENDED for job in known.values()))
    scheduler.stop()
    store.close()


def told(folder: Path, name: str) -> list[list[str]]:
    """The words of each line that jobs have written there."""
    path = folder / name
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def steps_in(path: Path) -> list[int]:
    """The steps that a job (`chaos_job.py`) has saved, in the order in which it did."""
    return [int(line.split()[1]) for line in path.read_text().splitlines()]


def check_promises(folder: Path, store: Path | str, saved: Iterable[Path] = ()) -> dict[str, dict[str, Any]]:
    """What jobs wrote down and what the record says agree with what is promised; the jobs of the record.

    No device was used by two at once, no incarnation began twice, no step that was saved (`saved`) was lost, and the record gives the
    decisions again.
    """
    assert not told(folder, "breaches"), f"a device was used twice: {told(folder, 'breaches')}"
    twice = [one for one, count in Counter(tuple(line[:2]) for line in told(folder, "began")).items() if count > 1]
    assert not twice, f"incarnations began twice: {twice}"
    for path in saved:
        steps = steps_in(path)
        assert steps == sorted(set(steps)), f"a saved step was lost, or made by two at once: {path} {steps}"
    opened = SqlStore.open(store, write=False)
    jobs = {job["id"]: job for job in opened.jobs()}
    replays(opened)
    opened.close()
    return jobs
