"""Plant defects one by one and see whether the nearest tests fall: `make mutants`, or `python .ci/mutants.py metrics` for one room.

Each mutant changes one place of a copy of the sources. One that survives is a sentence that no test near it says. Prints the survivors and
their share; leaves with 1 if there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 1200  # seconds for the tests of one mutant; a mutant that hangs is found


@dataclass(frozen=True)
class Mutant:
    """A defect: what is replaced by what, in which file, and the tests that should notice."""

    room: str
    file: str
    old: str
    new: str
    tests: str


def _of(room: str, file: str, tests: str, *changes: tuple[str, str]) -> list[Mutant]:
    return [Mutant(room, f"src/gantline/{file}", old, new, tests) for old, new in changes]


MUTANTS = [
    *_of("metrics", "report/metrics/completion.py", "tests/report/test_completion.py",
        ("[0.5, 0.9, 0.95, 0.99]", "[0.5, 0.9, 0.9, 0.99]"),
        ("pl.lit(1.0)", "pl.lit(0.0)"),
        ("SLOWDOWN_THRESHOLD = 10.0", "SLOWDOWN_THRESHOLD = 1.0"),
        ('["running", "waiting"]', '["running"]'),
        ("float(found.max())", "float(found.min())"),
    ),
    *_of("metrics", "report/metrics/fairness.py", "tests/report/test_fairness.py",
        ("np.maximum(slowdown, 1.0)", "np.maximum(slowdown, 0.0)"),
        ('!= "rejected")\n    return present', '!= "failed")\n    return present'),
        ('if definition == "share" else 1.0', 'if definition == "contention" else 1.0'),
        ("everyone.height / gpus", "jobs.height / gpus"),
    ),
    *_of("metrics", "report/metrics/steadiness.py", "tests/report/test_steadiness.py",
        ("self.offered_load > 1.0", "self.offered_load > 1.1"),
        ("late > early", "late >= early"),
        ('closed="left"', 'closed="both"'),
        ("GROWTH = 2.0", "GROWTH = 4.0"),
    ),
    *_of("importers", "workload/importers/swf.py", "tests/workload/test_import_logs.py",
        ("[2.0, 3.0, 4.0]", "[2.0, 3.0]"),
        (".ceil()", ".floor()"),
        ("1024 / 1e9", "1000 / 1e9"),
        ('value["asked_procs"].replace(0.0, None), value["procs"]', 'value["procs"], value["asked_procs"].replace(0.0, None)'),
        ("5.0: \"killed\"", "5.0: \"failed\""),
    ),
    *_of("importers", "workload/importers/sacct.py", "tests/workload/test_import_logs.py",
        ('"RUNNING", "SUSPENDED"', '"SUSPENDED"'),
        ('number(raw, "Restarts") + 1', 'number(raw, "Restarts")'),
        ('if name.endswith("GRES") else size', 'if name.endswith("TRES") else size'),
    ),
    *_of("tiresias", "policies/tiresias.py", "tests/policies/test_tiresias.py",
        ('self._service(snapshot), side="right")', 'self._service(snapshot), side="left")'),
        ("_NEVER + snapshot.jobs.arrival, first", "snapshot.jobs.arrival, first"),
        ("~jobs.running & (level > 0)", "(level > 0)"),
        ("level = np.where(promoted, 0, level)", "level = np.where(promoted, 1, level)"),
        ("if row in alive", "if row not in alive"),
        ("quantum * (n - last)", "quantum * (n - first)"),
        ("any(limit <= 0 for limit in self.limits)", "any(limit < 0 for limit in self.limits)"),
    ),
    *_of("turns", "engine/lost_turns.py", "tests/hostile/test_policies.py",
        ("self.in_a_row = self.late_in_a_row = 0", "self.in_a_row = 0"),
        ("if late else 0", "if late else self.late_in_a_row"),
        ("(IN_TIME_ONCE, ANSWERED_ONCE) if self.answers", "(IN_TIME_ONCE, ANSWERED_ONCE) if not self.answers"),
    ),
    *_of("turns", "engine/plan_check.py", "tests/hostile/test_policies.py",
        ("or math.isnan(until)", ""),
        ("len(plan.notes) > FEW", "len(plan.notes) > FEW**3"),
        ("len(refused) > jobs or", ""),
    ),
    *_of("agenda", "engine/agenda.py", "tests/simulator/test_costs_and_bounds.py",
        ("(self.late and self.state.B[B_ACTIVE] > 0)", "False"),
        ("due = at if at > now or due <= now else", "due = at if True else"),
    ),
    *_of("reconciler", "engine/reconcile.py", "tests/engine/test_faulty_stories.py tests/drivers/test_restart.py",
        ("report.epoch <= self.reality.over.get(row, -1)", "report.epoch < self.reality.over.get(row, -1)"),
        ("live is None or live.epoch != report.epoch", "live is None"),
        ("live.next_try = state.now + self.patience", "live.next_try = math.inf"),
        ("live.started = True", "live.started = False"),
    ),
]  # fmt: skip


def survives(mutant: Mutant, tree: Path) -> bool:
    """Whether the nearest tests pass although the defect is there."""
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) < 1:
        raise SystemExit(f"{mutant.file} has no {mutant.old!r} any more: change the list")
    file.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests.split()]
        found = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tree / "src")}, timeout=LIMIT, capture_output=True, check=False
        )
        return found.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_text(text, encoding="utf-8")


def main(rooms: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not rooms or mutant.room in rooms]
    alive = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        tree = Path(name)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for number, mutant in enumerate(chosen, start=1):
            lives = survives(mutant, tree)
            alive += [mutant] if lives else []
            print(
                f"{number}/{len(chosen)} {'SURVIVES' if lives else 'killed  '} {mutant.file}: {mutant.old!r} -> {mutant.new!r}", flush=True
            )
    print(f"{len(alive)} of {len(chosen)} mutants survive ({100 * len(alive) / max(len(chosen), 1):.0f} %)")
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
