"""What is written down of a run, and the file of a system: one line per run, under a head that says what held when it was written.

A record is compared on every checkout, with or without the originals' results beside it. Times are rounded to hundredths of a second, so
that the last digit of a sum does not count.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.records.runs import COMPARISONS

from gantline.simulator.run import Run

FOLDER = Path(__file__).parent
COMMAND = "make records"
NOT_COMPARED = "not compared: the results of the original were not there when this was written"
COLUMNS = "run | hash | mean jct | makespan | completed | preemptions | ends of the first, the middle and the last job"
JOBS = ("job", "state", "first_start", "finish", "gpu_seconds", "preemptions", "restarts")
#: runs, by how their names begin, in which the last digit of a processor's arithmetic decides, between equal optima of a program or
#: in a fit by the artifact's own search: their devices are not recorded
BY_PROCESSOR = ("gavel.max_sum_throughput_normalized_by_cost_packed_SLOs | ", "sia | sia, two jobs | fit=artifact")
INTERVALS = ("job", "start", "end", "type", "gpus", "nodes", "devices")
#: of a summary: what depends on the machine, on which clock it was that ran, or on how commits are carried out
NOT_RECORDED = frozenset({"cpu_seconds", "wall_seconds", "decisions", "rounds"})


def line_of(name: str, run: Run) -> str:
    """A run on one line: a hash over what each job held when and over the summary, and a few numbers that show how far a change reaches."""
    jobs, summary = run.jobs.sort("arrival", "job"), run.summary
    intervals = run.allocations.sort("start", "job", "end")
    rows = [[_rounded(value) for value in row] for row in (*jobs.select(*JOBS).rows(), *intervals.select(*INTERVALS).rows())]
    digest = hashlib.blake2b(repr([*rows, *_numbers(summary)]).encode(), digest_size=6).hexdigest()
    ends = " ".join(f"{job}:{_shown(end)}" for job, end in jobs.select("job", "finish").rows()[:: max(1, (jobs.height - 1) // 2)][:3])
    numbers = (
        _shown(summary["average_jct"]),
        _shown(summary["makespan"]),
        f"{summary['completed']}/{summary['jobs']}",
        str(summary["preemptions"]),
    )
    return " | ".join([name, "-" if f"{name} | ".startswith(BY_PROCESSOR) else digest, *numbers, ends])


def _numbers(summary: dict[str, Any]) -> list[str]:
    """Everything that a summary counts or measures, to five digits."""
    named = sorted((name, value) for name, value in summary.items() if name not in NOT_RECORDED)
    return [f"{name} {value:.5g}" for name, value in named if isinstance(value, int | float)]


def _rounded(value: object) -> object:
    return round(value, 2) + 0.0 if isinstance(value, float) else value


def _shown(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.1f}"


def name_in(line: str) -> str:
    """The run that a line is about: everything before its six columns."""
    return line.rsplit(" | ", 6)[0]


@dataclass(frozen=True)
class Record:
    """The file of a system."""

    system: str
    held: str  # which comparisons with the original held when it was written
    lines: tuple[str, ...]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.system}.txt"

    @property
    def seal(self) -> str:
        """Over everything else in the file: a line that was changed by hand is noticed."""
        return hashlib.blake2b("\n".join((self.system, self.held, *self.lines)).encode(), digest_size=6).hexdigest()

    def write(self) -> None:
        head = [f"# {self.system}: runs on workloads of our own making (tests/records). Written by `{COMMAND}`, never by hand."]
        head += [f"# held: {self.held}", f"# seal: {self.seal}", f"# {COLUMNS}"]
        self.path.write_text("\n".join([*head, *self.lines, ""]), encoding="utf-8")


def read_record(system: str) -> tuple[Record, str]:
    """The record of a system, and the seal that its file bears."""
    path = FOLDER / f"{system}.txt"
    if not path.exists():
        return Record(system, "", ()), ""
    _, held, seal, _, *lines = path.read_text(encoding="utf-8").splitlines()
    return Record(system, held.removeprefix("# held: "), tuple(lines)), seal.removeprefix("# seal: ")


def recorded_systems() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def advice(system: str) -> str:
    """What to do where a run is not what was recorded."""
    held = ", after the comparisons with the original where its results are there" if system in COMPARISONS else ""
    return f"if that is what you want, `{COMMAND} SYSTEMS={system}` writes tests/records/{system}.txt anew{held}"


def differences(recorded: Record, found: dict[str, str]) -> list[str]:
    """Sentences about every run that is not as recorded, new, or gone."""
    before = {name_in(line): line for line in recorded.lines}
    told = [f"{name}\n  recorded: {before[name]}\n  now:      {line}" for name, line in found.items() if before.get(name, line) != line]
    told += [f"{name}: no record" for name in found if name not in before]
    return told + [f"{name}: recorded, but no such run is made" for name in before if name not in found]
