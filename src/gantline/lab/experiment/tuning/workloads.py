"""Workloads that settings are tried on, what is held back to see whether settings hold elsewhere, and the runs that try them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gantline.core.errors import GantlineError, UsageError
from gantline.lab.experiment.folder import ExperimentFolder
from gantline.lab.experiment.grid import Case, PolicyChoice
from gantline.lab.experiment.records import DISK_FULL, DONE, FAILED, Record, store_failure
from gantline.lab.experiment.running.tasks import Backend, Task, outcomes
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.metrics.measure import ended_jobs
from gantline.lab.report.run_warnings import is_broken
from gantline.lab.whole_files import DiskFullError
from gantline.simulator.objective import Ended, Objective
from gantline.traces.trace import Trace

if TYPE_CHECKING:
    pass

# A workload is the jobs of a file, or what a generator draws with one seed. Seeds of a run on the same file are no other jobs, so they stay
# on one side. One file alone is cut in time: the end of it is held back, as the future is.

FEWEST_JOBS = 20
"""Of a part of a file that is tuned on, or held back."""


@dataclass(frozen=True)
class JobSet:
    """Jobs, with every seed that is run on them."""

    name: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Workloads:
    """What is searched on, and what is not."""

    tuned_on: tuple[JobSet, ...]
    held_back: tuple[JobSet, ...]


def workloads_of(bases: Sequence[Setting], seeds: Sequence[int], share: float, seed: int, folder: Path) -> Workloads:
    """The workloads of these traces, `share` of them held back; `folder` takes the parts of a file that is cut."""
    if not 0.0 <= share < 1.0:
        raise UsageError(f"{share:g} is not a share below 1", where="--hold-back", fix="write 0.4, or 0 to hold nothing back")
    found = _distinct([one for base in bases for one in _of_trace(base, seeds)])
    if not share:
        return Workloads(tuple(found), ())
    if len(found) == 1:
        found, held = _cut(found[0], share, folder)
        return Workloads(tuple(found), tuple(held))
    count = min(max(1, round(share * len(found))), len(found) - 1)
    order = np.random.default_rng(seed).permutation(len(found))
    held_back = set(order[:count].tolist())
    return Workloads(
        tuple(one for place, one in enumerate(found) if place not in held_back),
        tuple(one for place, one in enumerate(found) if place in held_back),
    )


def _of_trace(base: Setting, seeds: Sequence[int]) -> list[JobSet]:
    trace = base.trace
    name = trace.generator or Path(trace.file).name
    if trace.generator and trace.seed is None:
        return [JobSet(f"{name} seed={seed}", (replace(base, seed=seed),)) for seed in seeds]
    return [JobSet(name, tuple(replace(base, seed=seed) for seed in seeds))]


def _distinct(found: list[JobSet]) -> list[JobSet]:
    """Refuse the same jobs under two names: they would be on both sides."""
    seen: dict[str, str] = {}
    for one in found:
        setting = one.settings[0]
        jobs = setting.trace.load(setting.seed).hash
        if jobs in seen:
            raise UsageError(f"'{seen[jobs]}' and '{one.name}' are the same jobs", where="--trace", fix="give each once")
        seen[jobs] = one.name
    return found


def _cut(one: JobSet, share: float, folder: Path) -> tuple[list[JobSet], list[JobSet]]:
    """The beginning and the end of the jobs, in order of arrival."""
    trace = one.settings[0].trace.load(one.settings[0].seed)
    frame = trace.frame.sort("arrival", maintain_order=True)
    first = frame.height - round(share * frame.height)
    if min(first, frame.height - first) < FEWEST_JOBS:
        what = f"{frame.height} jobs are too few to hold {share:g} of them back"
        fix = f"give several --trace, more jobs (at least {FEWEST_JOBS} a side), or --hold-back 0"
        raise UsageError(what, where="--hold-back", fix=fix)
    parts = []
    for name, rows in (("beginning", frame[:first]), ("end", frame[first:])):
        file = Trace.from_frame(rows, f"{trace.source}, {name}").save(folder / f"{name}.parquet")
        source = TraceSource(file=str(file))
        parts.append([JobSet(f"{one.name}, {name}", tuple(replace(setting, trace=source) for setting in one.settings))])
    return parts[0], parts[1]


@dataclass(frozen=True)
class Tried:
    """Settings that were run: the values of each workload, the mean over its seeds; or why there are none."""

    settings: Mapping[str, str]
    values: Mapping[str, Values] = field(default_factory=dict)
    failure: str = ""


# Running settings on workloads: a run per setting, workload and seed, kept in the folder like those of a sweep.

Values = dict[str, float]
"""The value of every word."""


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
