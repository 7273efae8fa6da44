"""What a worker does: run one setting, measure it, store its result."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gantline.core.errors import GantlineError
from gantline.lab.experiment.records import DISK_FULL, DONE, FAILED, Outcome, store_result
from gantline.lab.experiment.setting import Setting, move_setting, run_setting
from gantline.lab.whole_files import DiskFullError


@dataclass(frozen=True)
class Task:
    """A setting to run, the folder its result goes to, and whether the whole run is kept or its jobs only."""

    setting: Setting
    hash: str
    folder: str
    name: str = ""
    keep_run: bool = False
    called: Mapping[str, str] = field(default_factory=dict)  # what the sweep calls files that lie elsewhere here; stays in this process

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "called"} | {"setting": self.setting.to_dict()}

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Task:
        return cls(**{**given, "setting": Setting.read(given["setting"])})


def perform(task: Task) -> Outcome:
    """Run the task. Only a full disk is not the run's own fault, because every other run would meet it too."""
    began = time.perf_counter()
    try:
        facts = _perform(task)
        return Outcome(task.hash, DONE, seconds=time.perf_counter() - began, facts=facts)
    except DiskFullError as error:
        return Outcome(task.hash, DISK_FULL, str(error))
    except GantlineError as error:
        return Outcome(task.hash, FAILED, str(error), seconds=time.perf_counter() - began)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return Outcome(task.hash, FAILED, message, traceback.format_exc(), time.perf_counter() - began)


def _perform(task: Task) -> dict[str, Any]:
    run = run_setting(task.setting, task.hash)
    if task.called:
        run.summary |= {name: task.called[value] for name, value in run.summary.items() if isinstance(value, str) and value in task.called}
        run.summary["setting"] = move_setting(task.setting, task.called.__getitem__).to_dict()
    if task.name:
        run.summary["name"] = task.name
    if run.incidents:
        run.summary["first_incident"] = run.incidents[0]
    return store_result(Path(task.folder), task.hash, run, keep_run=task.keep_run)


# Where tasks run: the interface between a sweep and what runs its tasks.
#
# A backend takes tasks and yields an outcome for each, in any order, as they end: in this process, in worker processes of this machine
# (`workers`), or on a Ray cluster (`ray_backend`), from which files of the result are sent back.


class Backend(Protocol):
    """Runs tasks."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Yield one outcome per task as they end; closing the iterator stops what still runs."""


class InThisProcess:
    """One task after the other, here."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        for task in tasks:
            yield perform(task)


def outcomes(backend: Backend, tasks: Sequence[Task]) -> Iterator[Outcome]:
    """All outcomes; leaving early, by an error or by Ctrl-C, stops the backend."""
    with closing(backend.run(tasks)) as stream:  # type: ignore[type-var]
        yield from stream
