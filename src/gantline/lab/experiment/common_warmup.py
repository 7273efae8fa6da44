"""One warm-up for all policies and clusters on the same jobs: means are compared only over the same jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.outcome import DONE
from gantline.lab.experiment.sweep import Sweep

AUTO = "auto"


def with_common_warmup(cases: Sequence[Case], run: Callable[[Sequence[Case]], Sweep]) -> Sweep:
    """Run the cases; where their warm-up is to be found, run them once to find it, and again with the longest that any of them needs.

    The second time costs as much as the first, and every number of it, of jobs, queues and devices alike, is over the same jobs.
    """
    if not any(case.setting.warmup == AUTO for case in cases):
        return run(cases)
    first = run(cases)
    longest: dict[str, float] = {}
    for case, record in zip(first.cases, first.records):
        if record.state == DONE:
            longest[_jobs(case)] = max(longest.get(_jobs(case), 0.0), record.summary.get("warmup", 0.0))
    return run([_with_warmup(case, longest.get(_jobs(case), 0.0)) for case in cases])


def _jobs(case: Case) -> str:
    """The axes by which runs on other jobs, or under other rules, differ: all but the policy and the cluster, which are compared."""
    return repr(sorted((name, str(value)) for name, value in case.axes.items() if name != "cluster"))


def _with_warmup(case: Case, seconds: float) -> Case:
    if case.setting.warmup != AUTO:
        return case
    setting = replace(case.setting, warmup=seconds)
    return replace(case, setting=setting, hash=setting.hash)
