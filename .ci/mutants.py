"""Plant defects one by one and see whether the nearest tests fall: `make mutants`, or `make mutants ROOMS=metrics` for one room.

Each mutant changes one place of a copy of the sources. One that survives is a sentence that no test near it says. Prints the survivors and
their share, room by room; leaves with 1 if there is one. The room `heart` draws its mutants from the files that say who holds what since
when, and whose turn it is: `ROOMS=heart` draws 40, `ROOMS=heart:200:7` draws 200 with seed 7. Kernels run there as plain Python, so that
nothing is compiled; some of what survives cannot be noticed, because it only makes a short cut longer. Any other folder of the package is
a room too: `ROOMS=systems/pal:10:7` draws ten from `src/gantline/systems/pal`, which `tests/systems/pal` should notice.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from sampled import sample

ROOT = Path(__file__).parents[1]
CPU_LIMIT = 90  # processor seconds for the tests of one mutant of the heart, which take ten
LIMIT = 1200  # seconds for the tests of one mutant; a mutant that hangs is found


@dataclass(frozen=True)
class Mutant:
    """A defect: what is replaced by what, in which file, and the tests that should notice."""

    room: str
    file: str
    old: str
    new: str
    tests: str
    at: int = -1  # where; -1: the first place that reads so
    plain: bool = False  # kernels run as the Python that they are written in


def _of(room: str, file: str, tests: str, *changes: tuple[str, str]) -> list[Mutant]:
    return [Mutant(room, f"src/gantline/{file}", old, new, tests) for old, new in changes]


MUTANTS = [
    *_of("metrics", "report/metrics/completion.py", "tests/report/test_completion.py",
        ("(90, 95, 99)", "(90, 90, 99)"),
        ("threshold), 1.0)", "threshold), 0.0)"),
        ("SLOWDOWN_THRESHOLD = 10.0", "SLOWDOWN_THRESHOLD = 1.0"),
        ("unfinished(jobs).any() or ", ""),
        ("float(found.max())", "float(found.min())"),
    ),
    *_of("metrics", "report/metrics/fairness.py", "tests/report/test_fairness.py",
        ("np.maximum(slowdown, 1.0)", "np.maximum(slowdown, 0.0)"),
        ('!= "rejected")\n    return present', '!= "failed")\n    return present'),
        ('if definition == "share" else 1.0', 'if definition == "contention" else 1.0'),
        ("len(everyone) / gpus", "len(jobs) / gpus"),
    ),
    *_of("metrics", "report/steady.py", "tests/report/test_steadiness.py",
        ("else 0.0) > 1.0", "else 0.0) > 1.1"),
        ("late > early", "late >= early"),
        ("arrivals < end", "arrivals <= end"),
        ("TREND = 0.75", "TREND = 0.2"),
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
    *_of("tiresias", "systems/tiresias/policies/tiresias.py", "tests/systems/tiresias/test_tiresias.py",
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
        ("self.beside[:, nodes] + _SLACK >= count * np.array(amounts_beside(option))[:, None]", "True"),
    ),
    *_of("metrics", "report/metrics/types.py", "tests/report/test_types.py",
        ('pl.max_horizontal(pl.col("start"), until)', 'pl.col("start")'),
        ('.fill_null(pl.col("arrival"))', '.fill_null(pl.col("start"))'),
        ("sizes[own].tolist())", "sizes.tolist())"),
    ),
    *_of("doubts", "report/doubts.py", "tests/experiment/test_doubts.py",
        ('summary.get("waited") != 0', 'summary.get("waited") is None'),
    ),
    *_of("doubts", "simulator/summary.py", "tests/experiment/test_doubts.py",
        ("late | (I[c.PREEMPTIONS, rows] > 0)", "late"),
        ("simulation.state.regime.round * (1.0 + 1e-9)", "0.0"),
        ("(I[c.MIN_GPUS, rows] < I[c.MAX_GPUS, rows]).any()", "False"),
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
        ("(self.step_all or self.late) and", "self.step_all and"),
        ("due = at if at > now or due <= now else", "due = at if True else"),
    ),
    *_of("reconciler", "engine/reconcile.py", "tests/engine/test_faulty_stories.py tests/drivers/test_restart.py",
        ("report.epoch <= self.reality.over.get(row, -1)", "report.epoch < self.reality.over.get(row, -1)"),
        ("live is None or live.epoch != report.epoch", "live is None"),
        ("live.started = True", "live.started = False"),
    ),
    *_of("reconciler", "engine/ordering.py", "tests/engine/test_faulty_stories.py tests/drivers/test_restart.py",
        ("live.next_try = self.present() + self.patience", 'live.next_try = float("inf")'),
    ),
]  # fmt: skip
MUTANTS += [
    replace(mutant, plain=True)
    for mutant in _of("undo", "engine/eviction.py", "tests/engine/test_walk_against_plain.py",
        ("    notes.free[kind] -= I[c.HELD, row]\n", "    pass\n"),
        ("    notes.reclaim[kind] += I[c.HELD, row]\n    device", "    device"),
        ("t.NI[c.N_RECLAIM, t.D[c.D_NODE, device]] += 1 - t.D[c.D_CLOSED, device]\n        device = t.D[c.D_NEXT, device]\n    number",
         "device = -1\n    number"),
        ("    restore(t, notes, v)\n", "    pass\n"),
        ("        take_beside(t.OF, NF, option, at, 1)\n", ""),
        ("            undo(t, notes)\n", "            number[w.VICTIMS] -= 1\n"),
        ("        number[w.BACK] = back\n", ""),
    )
]  # fmt: skip


#: who holds what since when, whose turn it is, when to look next; and the tests that hold it against something else
HEART = (
    "walk", "eviction", "gang", "gang_turns", "gang_moves", "ranks", "advance", "agenda", "commit", "repeats", "holdings",
    "transitions", "commit_general", "checkpoints", "node_changes", "grants", "blocked",
)  # fmt: skip
HEART_TESTS = " ".join(
    [
        *(f"tests/engine/test_{name}.py" for name in ("walk_against_plain", "grants_paths", "grants", "grants_costs", "growth_and_groups")),
        *(f"tests/engine/test_{name}.py" for name in ("node_changes", "reasons", "inputs", "grants_random")),
        "tests/simulator/test_costs_and_bounds.py", "tests/drivers/test_restart.py",
    ]
)  # fmt: skip


def of_heart(count: int = 40, seed: int = 1) -> list[Mutant]:
    """A sample of all small defects of the heart."""
    files = [ROOT / "src/gantline/engine" / f"{name}.py" for name in HEART]
    drawn = sample(files, count, seed)
    return [Mutant("heart", str(file.relative_to(ROOT)), old, new, HEART_TESTS, at, plain=True) for file, (at, old, new) in drawn]


def of_folder(folder: str, count: int = 10, seed: int = 1) -> list[Mutant]:
    """A sample of all small defects of a folder of the package; the tests beside it and its recorded runs should notice."""
    files = sorted((ROOT / "src/gantline" / folder).rglob("*.py"))
    tests = next((f"tests/{name}" for name in (folder, folder.partition("/")[0]) if (ROOT / "tests" / name).is_dir()), "")
    if not files or not tests:
        raise SystemExit(f"no room {folder!r}: neither one of the list nor a folder of src/gantline that has tests")
    if (ROOT / "tests/records" / f"{Path(folder).name}.txt").exists():
        tests += f" tests/records/test_records.py::test_every_run_of_a_system_is_what_was_recorded[{Path(folder).name}]"
    drawn = sample(files, count, seed)
    return [Mutant(folder, str(file.relative_to(ROOT)), old, new, tests, at) for file, (at, old, new) in drawn]


def survives(mutant: Mutant, tree: Path) -> bool:
    """Whether the nearest tests pass although the defect is there."""
    file = tree / mutant.file
    text = file.read_bytes()
    old, new = mutant.old.encode(), mutant.new.encode()
    at = text.find(old) if mutant.at < 0 else mutant.at
    if at < 0 or not text.startswith(old, at):
        raise SystemExit(f"{mutant.file} has no {mutant.old!r} any more: change the list")
    file.write_bytes(text[:at] + new + text[at + len(old) :])
    try:
        return _passes(mutant.tests, mutant.plain, tree)
    finally:
        file.write_bytes(text)


def _passes(tests: str, plain: bool, tree: Path) -> bool:
    """Whether these tests pass on those sources."""
    paths = [str(tree / "src"), *([str(ROOT / ".ci")] if plain else [])]
    plugin = ["-p", "plain_kernels"] if plain else []
    try:
        found = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *plugin, *tests.split()],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            timeout=LIMIT,
            capture_output=True,
            check=False,
            preexec_fn=_bound if plain else None,
        )
        return found.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _bound() -> None:
    """A mutant that turns in circles is stopped by its own processor time, whatever else the machine does."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))


def _chosen(rooms: list[str]) -> list[Mutant]:
    """All that are listed, and a sample of the heart; or those of some rooms."""
    found = [mutant for mutant in MUTANTS if not rooms or mutant.room in rooms]
    for room in rooms or ["heart"]:
        name, *numbers = room.split(":")
        if name == "heart":
            found += of_heart(*map(int, numbers))
        elif not any(mutant.room == name for mutant in MUTANTS):
            found += of_folder(name, *map(int, numbers))
    return found


def _line_of(mutant: Mutant) -> str:
    place = f":{(ROOT / mutant.file).read_bytes()[: mutant.at].count(10) + 1}" if mutant.at >= 0 else ""
    return f"{mutant.file}{place}: {mutant.old!r} -> {mutant.new!r}"


def main(rooms: list[str]) -> int:
    chosen = _chosen(rooms)
    alive: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        tree = Path(name)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for tests, plain in dict.fromkeys((mutant.tests, mutant.plain) for mutant in chosen):
            if not _passes(tests, plain, tree):  # else everything would count as found
                raise SystemExit(f"without any defect these fail already: {tests}")
        for number, mutant in enumerate(chosen, start=1):
            lives = survives(mutant, tree)
            alive += [mutant] if lives else []
            print(f"{number}/{len(chosen)} {'SURVIVES' if lives else 'killed  '} {_line_of(mutant)}", flush=True)
    for room in dict.fromkeys(mutant.room for mutant in chosen):
        here, left = (sum(mutant.room == room for mutant in some) for some in (chosen, alive))
        print(f"{room}: {left} of {here} mutants survive ({100 * left / here:.0f} %)")
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
