"""What do the tests of every change notice of what all tests notice? `make strength` plants defects all over the package and tells.

Each defect is tried on the tests that reach its line: on those of every change, the nearest and quickest first, for so many processor
seconds, then, if it survives, on those that wait for the long run. Kernels run as plain Python, which some tests have no time for: where
a run is ended at its limit with a defect and without it, nobody knows. The same seed draws the same defects.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from reached import Test, lines_of, tests
from sampled import Change, changes

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "gantline"
SECONDS = 8.0  # of tests, as measured without a defect, each time
CPU_LIMIT = 90
AS_A_WHOLE = "the run as a whole"


def waiting() -> set[str]:
    lines = (ROOT / "tests" / "later.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


def nearest(covering: list[Test], file: str) -> list[Test]:
    """Tests of the same room first, the quick ones of these first, as many as fit."""
    room = file.rpartition("/")[0]
    ordered = sorted(covering, key=lambda test: (not test.name.startswith(f"tests/{room}/"), test.seconds))
    taken, spent = [], 0.0
    for test in ordered:
        spent += test.seconds
        if taken and spent > SECONDS:
            break
        taken.append(test)
    return taken


def notices(some: list[Test], tree: Path) -> str:
    """The first of these tests which fails there, or nothing."""
    if not some:
        return ""
    names = tree / "names"
    names.write_text("\n".join(test.name for test in some), encoding="utf-8")
    words = ["-x", "-p", "no:cacheprovider", "-p", "plain_kernels", "-p", "no:warnings", "--tb=no", "-rfE", "--timeout=120", f"@{names}"]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(ROOT / ".ci")])},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_bound,
    )
    if found.returncode == 0:
        return ""
    told = [line.split(" ", 1)[1].partition(" - ")[0] for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return told[0] if told else AS_A_WHOLE


def _line(path: Path, change: Change) -> int:
    return path.read_bytes()[: change[0]].count(10) + 1


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))


def tried(path: Path, change: Change, some: list[Test], tree: Path) -> str | None:
    """Which of these tests notices it, or nothing; None where they are ended without it, too."""
    file = tree / path.relative_to(ROOT)
    text = file.read_bytes()
    at, old, new = change
    file.write_bytes(text[:at] + new.encode() + text[at + len(old.encode()) :])
    try:
        found = notices(some, tree)
    finally:
        file.write_bytes(text)
    return None if found == AS_A_WHOLE and notices(some, tree) else found


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("traced")
    asked.add_argument("plain")
    asked.add_argument("--count", type=int, default=100)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--workers", type=int, default=2)
    given = asked.parse_args()
    files, found = tests(given.traced, given.plain)
    reaching: dict[tuple[int, int], list[Test]] = defaultdict(list)
    for test in found:
        if test.passed:
            for line in lines_of(test.reached):
                reaching[line].append(test)
    later = waiting()
    touched = {(files[file], line) for test in found if test.passed and test.function in later for file, line in lines_of(test.reached)}
    every = [(path, change) for path in sorted(SOURCES.rglob("*.py")) for change in changes(path)]
    within = [(path, change) for path, change in every if (str(path.relative_to(SOURCES)), _line(path, change)) in touched]
    print(f"{len(within)} of {len(every)} defects lie on lines that tests reach which wait", flush=True)
    drawn = random.Random(given.seed).sample(within, min(given.count, len(within)))
    trees: SimpleQueue[Path] = SimpleQueue()
    outcomes: Counter[str] = Counter()

    def one(number: int, path: Path, change: Change) -> None:
        name = str(path.relative_to(SOURCES))
        line = _line(path, change)
        covering = reaching.get((files.index(name), line), []) if name in files else []
        now = nearest([test for test in covering if test.function not in later], name)
        waits = nearest([test for test in covering if test.function in later], name)
        tree = trees.get()
        first = tried(path, change, now, tree)
        second = tried(path, change, waits, tree) if first == "" else ""
        trees.put(tree)
        unknown = first is None or second is None
        outcome = "unknown" if unknown else "noticed" if first else "LATER" if second else "survives" if covering else "unreached"
        outcomes[outcome] += 1
        print(f"{number} {outcome} {name}:{line} {change[1]!r} -> {change[2]!r} | {first or second} | {len(now)}+{len(waits)}", flush=True)

    with tempfile.TemporaryDirectory(prefix="strength-") as folder:
        for number in range(given.workers):
            shutil.copytree(ROOT / "src", Path(folder) / str(number) / "src", ignore=shutil.ignore_patterns("__pycache__"))
            trees.put(Path(folder) / str(number))
        with ThreadPoolExecutor(given.workers) as pool:
            for ended in [pool.submit(one, number, *defect) for number, defect in enumerate(drawn)]:
                ended.result()
    all_of_them = outcomes["noticed"] + outcomes["LATER"]
    print(dict(outcomes))
    print(f"of {given.count} defects all tests notice {all_of_them}, the tests of every change {outcomes['noticed']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
