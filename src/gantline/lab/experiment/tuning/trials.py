"""Running settings on workloads: a run per setting, workload and seed, kept in the folder like those of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gantline.core.ended import Ended
from gantline.core.errors import GantlineError
from gantline.core.objective import Objective
from gantline.lab.experiment.backend import Backend, outcomes
from gantline.lab.experiment.folder import ExperimentFolder
from gantline.lab.experiment.grid import Case, PolicyChoice
from gantline.lab.experiment.outcome import DISK_FULL, DONE, FAILED
from gantline.lab.experiment.records import Record, store_failure
from gantline.lab.experiment.task import Task
from gantline.lab.experiment.tuning.workloads import JobSet
from gantline.lab.experiment.whole_files import DiskFullError
from gantline.lab.report.doubts import is_broken
from gantline.lab.report.metrics.ended_run import ended_jobs

Values = dict[str, float]
"""The value of every word."""


@dataclass(frozen=True)
class Tried:
    """Settings that were run: the values of each workload, the mean over its seeds; or why there are none."""

    settings: Mapping[str, str]
    values: Mapping[str, Values] = field(default_factory=dict)
    failure: str = ""


@dataclass
class Laboratory:
    """Where settings of one policy are tried; every run is made once."""

    place: ExperimentFolder
    backend: Backend
    policy: str
    objectives: tuple[Objective, ...]
    cases: dict[str, Case] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """What must be known of each run."""
        return tuple(dict.fromkeys(word for one in self.objectives for word in one.words))

    def try_out(self, settings: Sequence[Mapping[str, str]], workloads: Sequence[JobSet]) -> list[Tried]:
        """Run these settings on the workloads, all of them side by side."""
        planned = [self._plan(one, workloads) for one in settings]
        self._run([case for plan in planned if not isinstance(plan, str) for cases in plan.values() for case in cases])
        return [Tried(one, failure=plan) if isinstance(plan, str) else self._tried(one, plan) for one, plan in zip(settings, planned)]

    def _plan(self, settings: Mapping[str, str], workloads: Sequence[JobSet]) -> dict[str, list[Case]] | str:
        """The runs of each workload, or why the policy cannot be made with these settings."""
        title = PolicyChoice(self.policy, settings).title
        found: dict[str, list[Case]] = {}
        try:
            for workload in workloads:
                for base in workload.settings:
                    setting = replace(base, policy=self.policy, settings=dict(settings)).pinned()
                    setting.make_policy()
                    case = Case(title, {"workload": workload.name, "seed": base.seed}, {}, setting, setting.hash)
                    found.setdefault(workload.name, []).append(self.cases.setdefault(case.hash, case))
        except GantlineError as error:
            return str(error)
        return found

    def _run(self, cases: Sequence[Case]) -> None:
        left = {case.hash: case for case in cases if not self.place.is_done(case.hash, with_run=False)}
        tasks = [Task(case.setting, key, str(self.place.runs), case.name) for key, case in left.items()]
        if not tasks:
            return
        for outcome in outcomes(self.backend, tasks):
            if outcome.state == DISK_FULL:
                raise DiskFullError("the disk is full", where=str(self.place.path), fix="make room and run the same command again")
            if outcome.state == FAILED:
                store_failure(self.place.runs, outcome, left[outcome.hash].setting.to_dict())

    def _tried(self, settings: Mapping[str, str], plan: Mapping[str, Sequence[Case]]) -> Tried:
        found: dict[str, Values] = {}
        for name, cases in plan.items():
            records = [self.place.record(case.hash) for case in cases]
            for case, record in zip(cases, records):
                if record.state != DONE:
                    return Tried(settings, failure=f"{case.name}: {record.message}")
                if is_broken(record.summary):
                    return Tried(settings, failure=f"{case.name}: {record.summary['doubts']}")
            runs = [_ended(record) for record in records]
            answers = [{word: value for one in self.objectives for word, value in one.values(run).items()} for run in runs]
            found[name] = {word: sum(answer[word] for answer in answers) / len(answers) for word in self.words}
        return Tried(settings, found)


def _ended(record: Record) -> Ended:
    summary, measures = record.summary, record.measures
    return ended_jobs(record.jobs(), summary["end"], summary["gpus"], measures["money"], measures["energy"])
