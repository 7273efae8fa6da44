"""A tiny world for Gavel's policies: three device types, four job types, a table typed by hand."""

from __future__ import annotations

from typing import Any

from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.traces.trace import Trace

SPEEDS = {  # steps per second alone: v100, p100, k80
    "big": (4.0, 2.0, 1.0),
    "small": (3.0, 2.5, 2.0),
    "flat": (1.0, 1.0, 1.0),
    "fussy": (2.0, 1.0, 0.0),
}
TYPES = ("v100", "p100", "k80")


def table(together: float = 0.8, sizes: tuple[int, ...] = (1, 2), across: float = 0.0) -> ThroughputTable:
    """All pairs keep this part of their speed; gangs of two are twice as fast, across nodes by ``across`` slower."""
    body: dict[str, Any] = {}
    for j, device in enumerate(TYPES):
        for suffix, factor in (("", 1.0), *((("_unconsolidated", 1.0 - across),) if across else ())):
            rows = {}
            for name, speeds in SPEEDS.items():
                for size in sizes:
                    own = speeds[j] * size * (factor if size > 1 else 1.0)
                    entry: dict[str, Any] = {"null": own}
                    for other, others in SPEEDS.items():
                        theirs = others[j] * size * (factor if size > 1 else 1.0)
                        possible = own > 0 and theirs > 0
                        entry[f"('{other}', {size})"] = [own * together, theirs * together] if possible else [0.0, 0.0]
                    rows[f"('{name}', {size})"] = entry
            body[device + suffix] = rows
    return ThroughputTable.of(body, "speeds.json")


def trace(*jobs: tuple[str, float, float] | tuple[str, float, float, int], **columns: list[Any]) -> Trace:
    """Jobs given as (type, steps, arrival[, gpus]); their durations are those on a V100."""
    rows = []
    for number, (name, steps, arrival, *rest) in enumerate(jobs):
        gpus = int(rest[0]) if rest else 1
        duration = steps / (SPEEDS[name][0] * gpus)
        row = {
            "job": str(number),
            "arrival": arrival,
            "gpus": gpus,
            "duration": duration,
            "work": steps,
            "throughput_key": f"('{name}', {gpus})",
        }
        rows.append({**row, **{column: values[number] for column, values in columns.items()}})
    return Trace.from_records(rows)
