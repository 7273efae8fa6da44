"""The typical mix: the most frequent shapes among pods, until they make up a share of all (Weng et al., ATC 2023, section 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools
from gantline.policies.placement.parts.columns import Shapes, TypicalMix

USUAL_SHARE = 0.95


class Shape(NamedTuple):
    """A request as it is written: CPU and GPU in thousandths, and the models that it accepts (empty: any)."""

    cpu: float
    part: float
    gpus: int
    models: str = ""


Accepts = Callable[[str], Bools]


def typical_mix(pods: Iterable[Shape], accepts: Accepts, share: float = USUAL_SHARE) -> TypicalMix:
    """Shapes by falling frequency, of equal ones the larger first, until `share` of all pods have one of them."""
    counted = Counter(pods)
    total = sum(counted.values())
    ranked = sorted(((count, shape) for shape, count in counted.items()), reverse=True)
    taken: list[tuple[int, Shape]] = []
    covered = 0
    for count, shape in ranked:
        if covered >= share * total:
            break
        taken.append((count, shape))
        covered += count
    shares = np.array([count / total for count, _ in taken])
    if len(taken) < len(ranked):
        shares = shares / (covered / total)
    columns = shape_columns([shape for _, shape in taken], accepts)
    return TypicalMix(*columns, shares)


def shape_columns(shapes: list[Shape], accepts: Accepts) -> Shapes:
    """Shapes as columns."""
    return Shapes(
        np.array([shape.cpu for shape in shapes], dtype=np.float64),
        np.array([shape.gpus for shape in shapes], dtype=np.int64),
        np.array([shape.part for shape in shapes], dtype=np.float64),
        np.array([accepts(shape.models) for shape in shapes], dtype=np.bool_).reshape(len(shapes), len(accepts(""))),
    )


def accepted_models(models: list[str]) -> Accepts:
    """How a request names models: `V100M16|V100M32`; empty accepts all."""
    return lambda wanted: np.array([not wanted or model in wanted.split("|") for model in models], dtype=np.bool_)
