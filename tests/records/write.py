"""`make records`: write the records anew whose runs are not what they were, once the comparisons with the originals have held again.

`make records SYSTEMS="gavel sia"` looks at those only. Where a comparison with an original fails, the record stays as it is, and the
command leaves with 4. Where the originals' results do not lie beside the checkout, the record is written and says so, in its head and in
the last lines of every run of the tests, until somebody who has them runs this again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from tests.records.record import NOT_COMPARED, Record, differences, line_of, read_record, recorded_systems
from tests.records.runs import COMPARISONS, recorded_runs
from tests.records.worlds import make_worlds
from tests.simulator.references import REFERENCE

REFUSED = 4
NOTHING_TO_COMPARE = "no results of an original are kept for this system; its tests are its oracles"


class _Counted:
    """Counts what pytest found."""

    def __init__(self) -> None:
        self.passed, self.others = 0, 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed += report.when == "call" and report.passed
        self.others += report.failed or report.skipped


def lines_now(systems: set[str], folder: Path) -> dict[str, dict[str, str]]:
    """Per system its runs as they come out today."""
    worlds = make_worlds(folder)
    found: dict[str, dict[str, str]] = {}
    for run in recorded_runs():
        if run.system in systems:
            line = line_of(run.name, worlds[run.world](run.policy, run.settings, **run.options))
            found.setdefault(run.system, {})[run.name] = line
    return found


def awaits_comparison(system: str) -> bool:
    """Whether its record was written elsewhere, and the results of its original are here."""
    return read_record(system)[0].held == NOT_COMPARED and REFERENCE.is_dir()


class RefusedError(Exception):
    """Why a record is not written."""


def compare_again(system: str) -> str:
    """Run the comparisons of a system with its original; what held, in words."""
    if system not in COMPARISONS:
        return NOTHING_TO_COMPARE
    if not REFERENCE.is_dir():
        return NOT_COMPARED
    counted = _Counted()
    code = pytest.main(["-q", "-n", "0", "-m", "", *COMPARISONS[system]], plugins=[counted])
    if code != 0 or counted.others:
        raise RefusedError(f"the comparisons of {system} with its original do not hold: {' '.join(COMPARISONS[system])}")
    return f"{counted.passed} tests of {', '.join(COMPARISONS[system])}"


def main(chosen: list[str]) -> int:
    """Write what changed and may be written; 4: something may not."""
    systems = {run.system for run in recorded_runs()}
    if unknown := set(chosen) - systems:
        return _refuse(f"no system {', '.join(sorted(unknown))}; there are {', '.join(sorted(systems))}")
    with tempfile.TemporaryDirectory(prefix="records-") as folder:
        now = lines_now(set(chosen) or systems, Path(folder))
    changed = [system for system, lines in now.items() if differences(read_record(system)[0], lines) or awaits_comparison(system)]
    code = 0
    for system in changed:
        try:
            record = Record(system, compare_again(system), tuple(now[system].values()))
        except RefusedError as refusal:
            code = _refuse(f"{refusal}; tests/records/{system}.txt stays as it is")
        else:
            record.write()
            print(f"written: {record.path.name}; {'' if record.held == NOT_COMPARED else 'held: '}{record.held}")
    for system in set(recorded_systems()) - systems:
        Record(system, "", ()).path.unlink()
        print(f"removed: {system}, which is no system any more")
    print(f"{len(now) - len(changed)} of {len(now)} records are what they were")
    return code


def _refuse(why: str) -> int:
    print(f"refused: {why}", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
