"""Plant defects one by one and see whether the nearest tests fall: `make mutants`, or `make mutants ROOMS=metrics` for one room.

Each mutant changes one place of a copy of the sources. One that survives is a sentence that no test near it says. Prints the survivors and
their share, room by room; leaves with 1 if there is one.
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
    *_of("metrics", "lab/report/metrics/completion.py", "tests/lab/report/test_completion.py",
        ("(90, 95, 99)", "(90, 90, 99)"),
        ("SLOWDOWN_THRESHOLD), 1.0)", "SLOWDOWN_THRESHOLD), 0.0)"),
        ("SLOWDOWN_THRESHOLD = 10.0", "SLOWDOWN_THRESHOLD = 1.0"),
        ("unfinished(jobs).any() or ", ""),
        ("float(found.max())", "float(found.min())"),
    ),
    *_of("metrics", "lab/report/metrics/fairness.py", "tests/lab/report/test_fairness.py",
        ("np.maximum(slowdown, 1.0)", "np.maximum(slowdown, 0.0)"),
        ('!= "rejected")\n    return present', '!= "failed")\n    return present'),
        ('if definition == "share" else 1.0', 'if definition == "contention" else 1.0'),
        ("len(everyone) / gpus", "len(jobs) / gpus"),
    ),
    *_of("metrics", "lab/report/metrics/steadiness.py", "tests/lab/report/test_types.py",
        ("else 0.0) > 1.0", "else 0.0) > 1.1"),
        ("late > early", "late >= early"),
        ("arrivals < end", "arrivals <= end"),
        ("TREND = 0.75", "TREND = 0.2"),
    ),
    *_of("importers", "traces/importers/swf.py", "tests/traces/test_import_logs.py",
        ("[2.0, 3.0, 4.0]", "[2.0, 3.0]"),
        (".ceil()", ".floor()"),
        ("1024 / 1e9", "1000 / 1e9"),
        ('value["asked_procs"].replace(0.0, None), value["procs"]', 'value["procs"], value["asked_procs"].replace(0.0, None)'),
        ("5.0: \"killed\"", "5.0: \"failed\""),
    ),
    *_of("importers", "traces/importers/slurm.py", "tests/traces/test_import_logs.py",
        ('"RUNNING", "SUSPENDED"', '"SUSPENDED"'),
        ('number(raw, "Restarts") + 1', 'number(raw, "Restarts")'),
        ('if name.endswith("GRES") else size', 'if name.endswith("TRES") else size'),
    ),
    *_of("tiresias", "systems/tiresias/policies.py", "tests/systems/tiresias/test_tiresias.py",
        ('self._service(snapshot), side="right")', 'self._service(snapshot), side="left")'),
        ("_NEVER + snapshot.jobs.arrival, first", "snapshot.jobs.arrival, first"),
        ("self.promote * ran if", "self.promote + ran if"),
        ("level = np.where(promoted, 0, level)", "level = np.where(promoted, 1, level)"),
        ("if row in alive", "if row not in alive"),
        ("quantum * (n - last)", "quantum * (n - first)"),
        ("any(limit <= 0 for limit in self.limits)", "any(limit < 0 for limit in self.limits)"),
    ),
    *_of("sharing", "policies/sharing.py", "tests/policies/test_sharing.py",
        ("given if evict else self.given + self.behind", "given"),
        ("(wanted > 0.0) & (wanted < 1.0)", "(wanted > 0.0)"),
        ("closed = closed or ranking.misfit == Misfit.STOP", "closed = closed"),
        ("best = np.lexsort((devices, -fill,", "best = np.lexsort((devices, fill,"),
        ("whole[np.argmin(count[whole])]", "whole[np.argmax(count[whole])]"),
        ("self.host_resources[:, nodes] + _SLACK >= count * np.array(amounts_beside(option))[:, None]", "True"),
    ),
    *_of("metrics", "lab/report/metrics/devices.py", "tests/lab/report/test_types.py",
        ('pl.max_horizontal("start", known)', 'pl.col("start")'),
        ('.fill_null(pl.col("arrival"))', '.fill_null(pl.col("start"))'),
        ("sizes[own].tolist())", "sizes.tolist())"),
    ),
    *_of("doubts", "lab/report/run_warnings.py", "tests/lab/experiment/test_messages.py",
        ('summary.get("waited") != 0', 'summary.get("waited") is None'),
    ),
    *_of("doubts", "simulator/summary.py", "tests/lab/experiment/test_messages.py",
        ("late | (jobs.preemptions[rows] > 0)", "late"),
        ("simulation.state.regime.round * (1.0 + 1e-9)", "0.0"),
        ("(jobs.min_gpus[rows] < jobs.max_gpus[rows]).any()", "False"),
    ),
    *_of("turns", "engine/policy_failures.py", "tests/hostile/test_policies.py",
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
        ("(self.step_all or self.late) and", "self.step_all and"),
        ("due = at if at > now or due <= now else", "due = at if True else"),
    ),
    *_of("reconciler", "engine/reconcile.py", "tests/engine/test_faulty_stories.py tests/engine/drivers/test_restart.py",
        ("report.epoch <= self.reality.over.get(row, -1)", "report.epoch < self.reality.over.get(row, -1)"),
        ("live is None or live.epoch != report.epoch", "live is None"),
        ("live.started = True", "live.started = False"),
    ),
    *_of("reconciler", "engine/ordering.py", "tests/engine/test_faulty_stories.py tests/engine/drivers/test_restart.py",
        ("live.next_try = self.present() + self.patience", 'live.next_try = float("inf")'),
    ),
    *_of("undo", "engine/walk/eviction.py", "tests/engine/test_walk_against_plain.py",
        ("    notes.free[kind] -= I[Job.HELD, row]\n", "    pass\n"),
        ("    notes.reclaim[kind] += I[Job.HELD, row]\n    device", "    device"),
        ("t.NI[Node.RECLAIM, t.D[Device.NODE, device]] += 1 - t.D[Device.CLOSED, device]"
         "\n        device = t.D[Device.NEXT, device]\n    number",
         "device = -1\n    number"),
        ("    restore(t, notes, v)\n", "    pass\n"),
        ("        take_beside(t.OF, NF, option, at, 1)\n", ""),
        ("            undo(t, notes)\n", "            number[Walk.VICTIMS] -= 1\n"),
        ("        number[Walk.BACK] = back\n", ""),
    ),
]  # fmt: skip


def survives(mutant: Mutant, tree: Path) -> bool:
    """Whether the nearest tests pass although the defect is there."""
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    if mutant.old not in text:
        raise SystemExit(f"{mutant.file} has no {mutant.old!r} any more: change the list")
    file.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    try:
        return _passes(mutant.tests, tree)
    finally:
        file.write_text(text, encoding="utf-8")


def _passes(tests: str, tree: Path) -> bool:
    """Whether these tests pass on those sources."""
    try:
        found = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(tree / "src")},
            timeout=LIMIT,
            capture_output=True,
            check=False,
        )
        return found.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(rooms: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not rooms or mutant.room in rooms]
    alive: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        tree = Path(name)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for tests in dict.fromkeys(mutant.tests for mutant in chosen):
            if not _passes(tests, tree):  # else everything would count as found
                raise SystemExit(f"without any defect these fail already: {tests}")
        for number, mutant in enumerate(chosen, start=1):
            lives = survives(mutant, tree)
            alive += [mutant] if lives else []
            told = f"{mutant.file}: {mutant.old!r} -> {mutant.new!r}"
            print(f"{number}/{len(chosen)} {'SURVIVES' if lives else 'killed  '} {told}", flush=True)
    for room in dict.fromkeys(mutant.room for mutant in chosen):
        here, left = (sum(mutant.room == room for mutant in some) for some in (chosen, alive))
        print(f"{room}: {left} of {here} mutants survive ({100 * left / here:.0f} %)")
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
