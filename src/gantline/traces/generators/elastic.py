"""Jobs that can grow and shrink: lengths over three decades, each with a scaling curve of its own.

The shape is that of the usual studies of elastic sharing (AFS, NSDI 2021; FfDL, MASCOTS 2020; Elastic-Tiresias, TPDS 2022), whose own jobs
were not published; the draws are ours. ``curves: amdahl`` lists every size as an option, by Amdahl's law with a parallel part drawn from
``parallel``. ``curves: steps`` gives each job the times of which its training steps are made, and a range of batch sizes (`scaling`).
``curves: servers`` are jobs with parameter servers, as Optimus (EuroSys 2018) has them. With ``rigid`` the very same jobs have the size
that they ask for and no other, for schedulers that know no elasticity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.models.convergence import LossCurve
from gantline.models.links.slowest_link_scaling import Scaling
from gantline.models.parameter_servers import ServerJob, ServerSpeed
from gantline.traces.generators.drawing import Streams, as_trace, unit_gaps
from gantline.traces.generators.given import Mix, check_above_zero, fault, mix_of, number, seconds, settings_of, whole
from gantline.traces.options import WrittenOption, format_options
from gantline.traces.trace import Trace

CURVES = ("amdahl", "steps", "servers")
SIZES = Mix((1, 2, 4, 8), (0.4, 0.2, 0.25, 0.15))
_SYNC, _ASYNC = (1.02, 2.78, 4.92, 0.0, 0.02), (2.83, 3.92, 0.0, 0.11)
_BATCHES = (16, 32, 64)


@dataclass(frozen=True, kw_only=True, slots=True)
class ElasticSettings:
    """``shortest`` and ``longest`` are seconds on one GPU, drawn log-uniformly; ``most`` is what a job can use at best."""

    jobs: int = 150
    jobs_per_hour: float = 30.0
    sizes: Mix[int] = SIZES
    most: int = 16
    shortest: float = 600.0
    longest: float = 200_000.0
    parallel: tuple[float, float] = (0.8, 0.99)
    curves: str = "amdahl"
    rigid: bool = False
    variation: float = 1.0
    type: str = "gpu"

    def __post_init__(self) -> None:
        check_above_zero(self, "jobs", "jobs_per_hour", "most", "shortest", "variation")
        if self.longest < self.shortest:
            raise fault("longest", f"{self.longest:g} s is below the shortest, {self.shortest:g} s")
        if min(self.sizes.values) < 1 or max(self.sizes.values) > self.most:
            raise fault("sizes", f"sizes lie between 1 and the {self.most} GPUs that a job can use", "set most as well")
        if not 0.0 <= self.parallel[0] <= self.parallel[1] < 1.0:
            raise fault("parallel", f"{self.parallel[0]:g}-{self.parallel[1]:g} is no range of parallel parts", "for instance 0.8-0.99")
        if self.curves not in CURVES:
            raise fault("curves", f"there are no curves '{self.curves}'", "use " + " or ".join(CURVES))


def _span(value: object, field: str) -> tuple[float, float]:
    parts = value.split("-") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
    found = [number(part, field) for part in parts]
    if len(found) not in (1, 2):
        raise fault(field, f"{value!r} is not a range", "write low-high, as in 0.8-0.99")
    return found[0], found[-1]


def _sizes(value: object, field: str) -> Mix[int]:
    return mix_of(value, field, whole)


def elastic(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``elastic``."""
    wanted = settings_of(ElasticSettings, given, sizes=_sizes, shortest=seconds, longest=seconds, parallel=_span)
    streams, count = Streams(seed), wanted.jobs
    gaps = unit_gaps(streams.uniforms("arrival", count), "gamma", wanted.variation) * 3600.0 / wanted.jobs_per_hour
    size = np.array(wanted.sizes.values, dtype=np.int64)[wanted.sizes.pick(streams.uniforms("gpus", count))]
    alone = wanted.shortest * (wanted.longest / wanted.shortest) ** streams.uniforms("length", count)
    columns = {"arrival": pl.Series(np.round(np.cumsum(gaps) - gaps[0], 1)), "gpus": pl.Series(size)}
    columns |= {"amdahl": _amdahl, "steps": _steps, "servers": _servers}[wanted.curves](wanted, streams, size, alone)
    if wanted.rigid:
        columns = {name: column for name, column in columns.items() if name not in ("min_gpus", "max_gpus", "options")}
    return as_trace(columns, f"generated: elastic, seed {seed}")


def _amdahl(wanted: ElasticSettings, streams: Streams, size: Ints, alone: Floats) -> dict[str, pl.Series]:
    """Every size as an option, the one that is asked for first."""
    low, high = wanted.parallel
    serial = 1.0 - (low + (high - low) * streams.uniforms("parallel", len(size)))
    seconds_at = alone[:, None] * (serial[:, None] + (1.0 - serial[:, None]) / np.arange(1, wanted.most + 1)[None, :])
    seconds_at = np.round(seconds_at, 3)
    asked = seconds_at[np.arange(len(size)), size - 1]
    options = []
    for row, own in enumerate(size.tolist()):
        order = [own, *(gpus for gpus in range(1, wanted.most + 1) if gpus != own)]
        options.append(format_options(WrittenOption(wanted.type, gpus, float(seconds_at[row, gpus - 1])) for gpus in order))
    return _range(wanted, len(size)) | {"duration": pl.Series(asked), "options": pl.Series(options)}


def _steps(wanted: ElasticSettings, streams: Streams, size: Ints, alone: Floats) -> dict[str, pl.Series]:
    """Times of which steps are made: half of the jobs spend them on computing, half on exchanging gradients."""
    count = len(size)
    heavy = streams.uniforms("exchange", count) < 0.5
    base = np.array(_BATCHES)[(streams.uniforms("batch", count) * len(_BATCHES)).astype(np.int64)]
    sample = np.round(0.5e-3 * 8.0 ** streams.uniforms("sample", count), 6)
    fixed = np.round(0.01 + 0.04 * streams.uniforms("fixed", count), 6)
    exchange = np.where(heavy, 0.1, 0.01) * (0.5 + streams.uniforms("size", count))
    texts, duration = [], []
    for row in range(count):
        own = int(base[row])
        within = round(float(exchange[row]), 6)
        made = Scaling(float(fixed[row]), float(sample[row]), within, 4.0 * within, own, own, 16 * own, 4 * own)
        texts.append(str(made))
        duration.append(round(float(alone[row]) * made.speed(1, 1) / made.speed(int(size[row]), 1), 3))
    found = {"duration": pl.Series(duration), "batch_size": pl.Series(base), "scaling": pl.Series(texts)}
    return _range(wanted, count) | found


def _servers(wanted: ElasticSettings, streams: Streams, size: Ints, alone: Floats) -> dict[str, pl.Series]:
    """Half synchronous, half asynchronous, with the terms that Optimus found for ResNet-50 times something between a half and two."""
    count = len(size)
    spread = 4.0 ** (streams.uniforms("terms", 5 * count).reshape(count, 5) - 0.5)
    sync, epochs = streams.uniforms("mode", count) < 0.5, 20 + (80 * streams.uniforms("epochs", count)).astype(np.int64)
    batch = 10 * 2 ** (3 * streams.uniforms("batch", count)).astype(np.int64)
    steepness, floor = 5.0 + 15.0 * streams.uniforms("loss", count), 0.3 * streams.uniforms("floor", count)
    texts, duration = [], []
    for row in range(count):
        terms = np.round(np.array(_SYNC if sync[row] else _ASYNC) * spread[row, : 5 if sync[row] else 4], 4)
        speed = ServerSpeed("sync" if sync[row] else "async", tuple(terms.tolist()), float(batch[row]))
        loss = LossCurve(round(steepness[row] / epochs[row], 4), 1.0, round(float(floor[row]), 4))
        texts.append(str(ServerJob(speed, float(epochs[row]), loss)))
        own = int(size[row])
        duration.append(round(float(alone[row]) * speed.speed(1, 1) / speed.speed(own, own), 3))
    return _range(wanted, count) | {"duration": pl.Series(duration), "scaling": pl.Series(texts)}


def _range(wanted: ElasticSettings, count: int) -> dict[str, pl.Series]:
    return {"min_gpus": pl.Series(np.ones(count, dtype=np.int64)), "max_gpus": pl.Series(np.full(count, wanted.most, dtype=np.int64))}
