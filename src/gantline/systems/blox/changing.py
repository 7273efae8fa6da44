"""Blox' two workloads with changing load (EuroSys 2024, Figures 14 and 15), made after their descriptions.

Long jobs come all the time. Short ones come beside them: ``dual``, at four times the rate for six hours of every ten; ``small-large``, four
times as many as long ones come in an hour, all at once every four hours. The released generators of both do not run, and their draws are
not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from gantline.core.errors import near
from gantline.traces.generators.drawing import as_trace
from gantline.traces.generators.given import fault, settings_of
from gantline.traces.trace import Trace

_USUAL = {"dual": 6.0, "small-large": 5.0}  # long jobs per hour
_LONG, _SHORT = (36_000, 86_400), (600, 3_600)  # seconds
_CYCLE, _ON = 36_000.0, 21_600.0
_BURST = 14_400.0
_TIMES = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangingSettings:
    """``hours`` during which jobs arrive; ``jobs_per_hour`` are long ones (none: 6, or 5 with bursts)."""

    kind: str = "dual"
    hours: float = 60.0
    jobs_per_hour: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in _USUAL:
            raise fault("kind", f"there is no kind '{self.kind}'", near(self.kind, _USUAL))
        for name in ("hours", "jobs_per_hour"):
            if getattr(self, name) is not None and not getattr(self, name) > 0.0:
                raise fault(name, f"{getattr(self, name):g} is not above zero")


def changing(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``blox-changing``."""
    wanted = settings_of(ChangingSettings, given)
    random, end = np.random.default_rng(seed), wanted.hours * 3600.0
    rate = wanted.jobs_per_hour or _USUAL[wanted.kind]
    rows = [(at, float(random.integers(*_LONG))) for at in _arrivals(random, rate, end)]
    if wanted.kind == "dual":
        short = [at for at in _arrivals(random, _TIMES * rate, end) if at % _CYCLE < _ON]
    else:
        short = np.repeat(np.arange(_BURST, end, _BURST), int(_TIMES * rate)).tolist()
    rows += [(at, float(random.integers(*_SHORT))) for at in short]
    rows.sort()
    columns = {
        "job": pl.Series([f"j{place}" for place in range(len(rows))]),
        "arrival": pl.Series([at for at, _ in rows]),
        "gpus": pl.Series([1] * len(rows), dtype=pl.Int64),
        "duration": pl.Series([work for _, work in rows]),
    }
    return as_trace(columns, f"generated: blox-changing {wanted.kind}, seed {seed}")


def _arrivals(random: np.random.Generator, rate: float, end: float) -> list[float]:
    """Poisson arrivals in whole seconds, the first behind the end included."""
    found, now = [], 0.0
    while now < end:
        now += float(np.ceil(random.exponential(3600.0 / rate)))
        found.append(now)
    return found
