"""A pytest plugin: which branches of our sources each test reaches, and the seconds it takes. `make reach` runs it.

Its seconds are the processor's, or the clock's where it waits for longer: both are what a run of the suite takes.

`-p reach` with GANTLINE_REACH=FILE writes FILE-WORKER.npz. With GANTLINE_REACH_SECONDS=1 nothing is traced, so that the seconds are those
of a plain run. Neither what kernels do inside nor what child processes reach is seen; which tests have such processes is noted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SOURCES = str(Path(__file__).parents[1] / "src" / "gantline") + os.sep


class Reach:
    """Per test: branches as (file, pair of lines), seconds, seconds of children, whether it passed."""

    def __init__(self, target: str, traced: bool) -> None:
        self.target, self.traced = target, traced
        self.files: dict[str, int] = {}
        self.tests: dict[str, dict[str, Any]] = {}
        if traced:
            from coverage import Coverage

            self.coverage = Coverage(branch=True, source=[SOURCES], data_file=None, config_file=False)
            self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._reached()
        before = os.times()
        found = yield
        after = os.times()
        children = sum(after[2:4]) - sum(before[2:4])
        test = self.tests.setdefault(item.nodeid, {"passed": True})
        seconds = max(sum(after[:4]) - sum(before[:4]), after.elapsed - before.elapsed)
        test |= {"seconds": seconds, "children": children, "reached": self._reached()}
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self.tests.setdefault(report.nodeid, {"passed": True})
        test["passed"] &= report.outcome == "passed"

    def _reached(self) -> np.ndarray:
        """What was reached since the last time, and forget it."""
        if not self.traced:
            return np.zeros(0, np.int64)
        found = [np.zeros(0, np.int64)]
        for path, pairs in list(self.coverage._collector.data.items()):
            file = self.files.setdefault(path.removeprefix(SOURCES), len(self.files))
            packed = np.fromiter(pairs, np.int64, len(pairs))
            pairs.clear()
            # two numbers of lines and their signs, as coverage packs them, closer together
            found.append(packed & 0xFFFFF | (packed >> 28 & 0xFFFFF) << 20 | (packed >> 56 & 3) << 40 | file << 42)
        return np.concatenate(found)

    def pytest_sessionfinish(self) -> None:
        names = [name for name, test in self.tests.items() if "reached" in test]
        reached = [self.tests[name]["reached"] for name in names]
        numbers = {key: np.array([self.tests[name][key] for name in names]) for key in ("seconds", "children", "passed")}
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        np.savez_compressed(
            f"{self.target}-{worker}.npz",
            tests=np.array(names),
            files=np.array(list(self.files)),
            ends=np.cumsum([len(some) for some in reached]),
            reached=np.concatenate([np.zeros(0, np.int64), *reached]),
            **numbers,
        )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Reach(os.environ["GANTLINE_REACH"], traced="GANTLINE_REACH_SECONDS" not in os.environ))
