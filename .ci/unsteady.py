"""Runs the tests that failed last once more, alone; one that passes then must be named in `tests/unsteady.txt`, with its cause.

    .ci/unsteady.py [WHICH TESTS, as for pytest]

Many tests run real services, processes and clocks. One that fails among others and passes alone is a race, in the test or in the service:
the run fails all the same, unless the race is known. The list has at most ten lines: `tests/room/test_it.py::test_it: why it happens`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).parents[1] / "tests" / "unsteady.txt"
MOST = 10


def known(text: str) -> dict[str, str]:
    """Test functions, without their cases, and why they are unsteady."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = {name: cause for name, _, cause in (line.partition(": ") for line in lines)}
    if len(lines) > MOST or not all("::" in name and cause for name, cause in found.items()):
        raise SystemExit(f"{LIST.name} names at most {MOST} tests, each as `tests/room/test_it.py::test_it: why it happens`")
    return found


def main(which: list[str]) -> int:
    causes = known(LIST.read_text(encoding="utf-8"))
    again = [sys.executable, "-m", "pytest", "--last-failed", "--last-failed-no-failures=none", *which]
    told = subprocess.run([*again, "--collect-only"], stdout=subprocess.PIPE, text=True, check=False).stdout
    failed = [line for line in told.splitlines() if "::" in line]
    print(f"=== {len(failed)} tests failed; they are run once more, alone", flush=True)
    if not failed or subprocess.run([*again, "-v"], check=False).returncode:
        return 1
    unknown = [test for test in failed if test.partition("[")[0] not in causes]
    for test in failed:
        print(f"=== UNSTEADY: {test} passed alone: {causes.get(test.partition('[')[0], f'find the race, or name it in {LIST.name}')}")
    return 1 if unknown else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
