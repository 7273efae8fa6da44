"""How long jobs run: distributions by their quantile function, as people write them.

Text: ``lognormal(median=1h, sigma=1.8)``, ``weibull(scale=2h, shape=0.6)``, ``loguniform(30m-16h:0.8, 16h-7d:0.2)``,
``quantiles(0=10s, 0.5=20m, 1=7d)``, or a plain time for jobs that all run equally long. A mapping (YAML) has a
``kind`` and the same words; a mapping from GPU counts (``1``, ``2-4``, ``8-``) to distributions makes the duration
depend on the size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from scipy.special import ndtri

from gantline.core.arrays import Floats
from gantline.core.errors import near
from gantline.traces.generators.given import fault, number, seconds


class Duration(Protocol):
    """A distribution of run times in seconds."""

    def quantile(self, uniforms: Floats) -> Floats:
        """The durations at these probabilities."""
        ...


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Pieces ``(low, high, weight)``: choose a piece by weight, then be uniform in the logarithm inside it."""

    pieces: tuple[tuple[float, float, float], ...]

    def quantile(self, uniforms: Floats) -> Floats:
        low, high, weight = (np.array(column, dtype=np.float64) for column in zip(*self.pieces, strict=True))
        share = weight / weight.sum()
        steps = np.concatenate(([0.0], np.cumsum(share)))
        which = np.minimum(np.searchsorted(steps, uniforms, side="right") - 1, len(share) - 1)
        inside = np.clip((uniforms - steps[which]) / share[which], 0.0, 1.0)
        return low[which] * (high[which] / low[which]) ** inside


@dataclass(frozen=True, slots=True)
class LogNormal:
    """The logarithm is normal: ``median`` in seconds, ``sigma`` the spread of the natural logarithm."""

    median: float
    sigma: float

    def quantile(self, uniforms: Floats) -> Floats:
        return self.median * np.exp(self.sigma * ndtri(np.maximum(uniforms, 1e-12)))


@dataclass(frozen=True, slots=True)
class Weibull:
    """Weibull with a ``scale`` in seconds; a ``shape`` below one has a long tail."""

    scale: float
    shape: float

    def quantile(self, uniforms: Floats) -> Floats:
        return self.scale * (-np.log1p(-uniforms)) ** (1.0 / self.shape)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """An empirical curve of ``(probability, seconds)`` points from 0 to 1, straight in the logarithm between them."""

    points: tuple[tuple[float, float], ...]

    def quantile(self, uniforms: Floats) -> Floats:
        chances, values = (np.array(column, dtype=np.float64) for column in zip(*self.points, strict=True))
        return np.exp(np.interp(uniforms, chances, np.log(values)))


@dataclass(frozen=True, slots=True)
class BySize:
    """Another distribution for each range of GPU counts: ``(fewest, most, distribution)``."""

    classes: tuple[tuple[int, int, Duration], ...]

    def of(self, gpus: int) -> Duration | None:
        """The distribution of jobs with this many GPUs."""
        return next((dist for fewest, most, dist in self.classes if fewest <= gpus <= most), None)


KINDS = ("lognormal", "weibull", "loguniform", "quantiles", "constant")
_MOST_GPUS = 1 << 30
_CALL = re.compile(r"^\s*([a-z]+)\s*\((.*)\)\s*$")
_SIZES = re.compile(r"^\s*(\d+)\s*(-)?\s*(\d+)?\s*$")


def durations_of(value: object, field: str) -> Duration | BySize:
    """Read one distribution, or one for each range of sizes."""
    if isinstance(value, BySize) or hasattr(value, "quantile"):
        return cast("Duration | BySize", value)
    if isinstance(value, Mapping):
        if "kind" in value:
            rest = {str(key): item for key, item in value.items() if key != "kind"}
            return _of_kind(str(value["kind"]), rest, field)
        classes = tuple((*_size_range(key, field), _one(item, field)) for key, item in value.items())
        if not classes:
            raise fault(field, "no distribution is given", f"kinds: {', '.join(KINDS)}")
        return BySize(classes)
    return _one(value, field)


def _one(value: object, field: str) -> Duration:
    if isinstance(value, str) and (call := _CALL.match(value)):
        kind, inside = call.groups()
        return _of_kind(kind, _words(inside, ":" if kind == "loguniform" else "=", field), field)
    if isinstance(value, str | int | float):
        return _of_kind("constant", {"seconds": value}, field)
    found = durations_of(value, field)
    if isinstance(found, BySize):
        raise fault(field, "a range of sizes must not contain further ranges")
    return found


def _words(text: str, sign: str, field: str) -> dict[str, object]:
    parts = [part.partition(sign) for part in text.split(",") if part.strip()]
    if any(not found for _, found, _ in parts):
        raise fault(field, f"'{text}' is not a list of name{sign}value pairs")
    return {name.strip(): value.strip() for name, _, value in parts}


def _of_kind(kind: str, words: Mapping[str, object], field: str) -> Duration:
    if kind == "lognormal":
        _expect(words, {"median", "sigma"}, kind, field)
        return LogNormal(_positive(words["median"], field), _at_least_zero(words["sigma"], field))
    if kind == "weibull":
        _expect(words, {"scale", "shape"}, kind, field)
        return Weibull(_positive(words["scale"], field), _positive(words["shape"], field))
    if kind == "constant":
        _expect(words, {"seconds"}, kind, field)
        time = _positive(words["seconds"], field)
        return LogUniform(((time, time, 1.0),))
    if kind == "loguniform":
        return LogUniform(tuple(_piece(span, weight, field) for span, weight in _items(words, "pieces")))
    if kind == "quantiles":
        return _curve([(number(at, field), _positive(time, field)) for at, time in _items(words, "points")], field)
    raise fault(field, f"'{kind}' is not a kind of distribution", near(kind, KINDS))


def _items(words: Mapping[str, object], key: str) -> Iterable[tuple[object, object]]:
    """The pairs themselves, or those under a key as YAML has them."""
    inner = words.get(key, words)
    return inner.items() if isinstance(inner, Mapping) else cast("Iterable[tuple[object, object]]", inner)


def _piece(span: object, weight: object, field: str) -> tuple[float, float, float]:
    low, sign, high = str(span).partition("-")
    if not sign:
        raise fault(field, f"'{span}' is not a range of times", "write low-high, as in 30m-16h")
    ends = (_positive(low, field), _positive(high, field))
    if ends[1] < ends[0]:
        raise fault(field, f"the range '{span}' ends before it begins")
    return (*ends, _positive(weight, field))


def _curve(points: list[tuple[float, float]], field: str) -> Quantiles:
    chances = [at for at, _ in points]
    times = [time for _, time in points]
    if len(points) < 2 or chances[0] != 0 or chances[-1] != 1 or sorted(set(chances)) != chances:
        raise fault(field, "the probabilities of quantiles must rise from 0 to 1", "as in 0=10s, 0.5=20m, 1=7d")
    if sorted(times) != times:
        raise fault(field, "the times of quantiles must not fall")
    return Quantiles(tuple(points))


def _size_range(text: object, field: str) -> tuple[int, int]:
    found = _SIZES.match(str(text))
    if not found:
        raise fault(field, f"'{text}' is not a range of GPU counts", "write 1, 2-4 or 8-")
    fewest, dash, most = found.groups()
    return int(fewest), int(most) if most else _MOST_GPUS if dash else int(fewest)


def _expect(words: Mapping[str, object], names: set[str], kind: str, field: str) -> None:
    if set(words) != names:
        raise fault(field, f"'{kind}' takes {' and '.join(sorted(names))}, not {', '.join(words) or 'nothing'}")


def _positive(value: object, field: str) -> float:
    found = seconds(value, field)
    if found <= 0:
        raise fault(field, f"{value!r} is not above zero")
    return found


def _at_least_zero(value: object, field: str) -> float:
    found = number(value, field)
    if found < 0:
        raise fault(field, f"{value!r} is below zero")
    return found
