"""The workloads of Gandiva's minimal experiments (OSDI 2018): many equal jobs at once, a mix of busy and idle ones, fragments, growth."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gantline.core.errors import near
from gantline.traces.generators.drawing import Streams, as_trace
from gantline.traces.generators.given import fault, read_given, whole, word
from gantline.traces.options import WrittenOption, format_options
from gantline.traces.trace import Trace

PARTS = ("equal", "mix", "busy", "fragments", "growth")


def gandiva(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``gandiva``; `part` is one of the experiments, `jobs` how many jobs it has."""
    wanted = read_given(given, {"part": word, "jobs": whole})
    part, count = wanted.get("part", "mix"), wanted.get("jobs", 32)
    if part not in PARTS:
        raise fault("part", f"there is no part '{part}'", near(part, PARTS))
    if count <= 0:
        raise fault("jobs", f"{count} is not above zero")
    drawn = Streams(seed).uniforms("job", count).tolist()
    rows = [_row(part, number, each) for number, each in enumerate(drawn)]
    return as_trace({name: pl.Series([row[name] for row in rows]) for name in rows[0]}, f"generated: gandiva, {part}, seed {seed}")


def _row(part: str, number: int, drawn: float) -> dict[str, float | int | str]:
    """A job of that part: of a mix a GPU is busy for 20 to 95 % of the time, busy jobs leave nothing to others.

    Fragments are, for every two servers of four GPUs, a short and a long job of three, then one of two that talks much and finds no server.
    Jobs that may grow have up to four GPUs, and gain less with each.
    """
    if part == "equal":
        return {"arrival": 0.0, "gpus": 1, "duration": 1000.0, "gpu_util": 0.95}
    if part in ("mix", "busy"):
        low, more = (0.2, 0.75) if part == "mix" else (0.96, 0.04)
        return {"arrival": 5.0 * number, "gpus": 1, "duration": 1800.0, "gpu_util": round(low + more * drawn, 3)}
    if part == "fragments":
        arrival, gpus, duration = ((0.0, 3, 400.0 + 200.0 * drawn), (0.0, 3, 6000.0), (60.0, 2, 3000.0))[number % 3]
        return {"arrival": arrival, "gpus": gpus, "duration": round(duration, 1), "spread_slowdown": 2.0, "gpu_util": 0.9}
    alone = round(2000.0 + 2000.0 * drawn, 1)
    options = format_options(WrittenOption("gpu", size, round(alone / size**0.8, 1)) for size in (1, 2, 4))
    return {"arrival": 300.0 * number, "gpus": 1, "duration": alone, "min_gpus": 1, "max_gpus": 4, "options": options, "gpu_util": 0.9}
