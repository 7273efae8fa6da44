"""Where the processor time of the suite goes: `pytest --cpu-seconds` prints it by folder and for the slowest files and test functions.

Processor seconds of this process and of the children that it has waited for; unlike wall time they hardly depend on what else the machine
does. What a shared fixture costs is counted to the first test which asks for it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from os import times
from pathlib import PurePosixPath

import pytest

SLOWEST = 60


def _spent() -> float:
    now = times()
    return time.process_time() + now.children_user + now.children_system


class CpuSeconds:
    """Measures in every worker, adds up where the reports arrive."""

    def __init__(self) -> None:
        self.since = _spent()
        self.of_test: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = _spent()
        report.user_properties.append(("cpu seconds", now - self.since))
        self.since = now
        return report

    def pytest_collection_finish(self) -> None:
        self.since = _spent()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.of_test[report.nodeid] += dict(report.user_properties).get("cpu seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        of_function: Counter[str] = Counter()
        of_file: Counter[str] = Counter()
        of_folder: Counter[str] = Counter()
        for name, seconds in self.of_test.items():
            file = name.partition("::")[0]
            of_function[name.partition("[")[0]] += seconds
            of_file[file] += seconds
            of_folder[str(PurePosixPath(file).parent)] += seconds
        for title, spent in (("folder", of_folder), ("file", of_file), ("test function", of_function), ("test", self.of_test)):
            terminalreporter.section(f"processor seconds by {title}")
            for name, seconds in spent.most_common(SLOWEST):
                terminalreporter.write_line(f"{seconds:8.2f}  {name}")
        terminalreporter.write_line(f"{sum(self.of_test.values()):8.2f}  all {len(self.of_test)} tests")
