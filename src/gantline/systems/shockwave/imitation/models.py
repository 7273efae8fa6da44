"""The models of Shockwave's traces: samples per epoch, largest batch sizes, and the epochs in which a batch size may change.

Two ways to grow a batch: Accordion (Agarwal et al., MLSys 2021) trains with the small batch in critical regimes and the largest one
outside; gradient noise scale (GNS, McCandlish et al., 2018) doubles the batch when the noise has passed a threshold. The planner's profile
and the simulated job follow slightly different rules in the original, so both are here.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import Final

SAMPLES: Final = {
    "ResNet-18": 50000,
    "ResNet-50": 100000,
    "Transformer": 10000,
    "LM": 59675,
    "Recommendation": 117907,
    "CycleGAN": 6287,
    "A3C": 4,
}
LARGEST: Final = {"ResNet-18": 256, "ResNet-50": 128, "Transformer": 128, "LM": 80, "Recommendation": 8192}

#: (model, gang) -> first batch -> epochs from which the batch is 2, 4, 8, 16 times as large
_DOUBLINGS: Final[dict[tuple[str, int], dict[int, tuple[int, ...]]]] = {
    ("ResNet-18", 1): {16: (31, 41, 51, 71), 32: (21, 31, 51), 64: (11, 31), 128: (11,)},
    ("ResNet-18", 2): {16: (21, 31, 91, 111), 32: (11, 21, 41), 64: (21, 41), 128: (41,)},
    ("ResNet-18", 4): {16: (11, 21, 81, 91), 32: (21, 31, 61), 64: (11, 61), 128: (11,)},
    ("ResNet-50", 1): {64: (101,)},
    ("ResNet-50", 2): {32: (101, 111), 64: (81,)},
    ("ResNet-50", 4): {32: (131, 221), 64: (191,)},
    ("LM", 1): {5: (31, 41, 61, 71), 10: (11, 21, 41), 20: (11, 41), 40: (11,)},
    ("LM", 2): {5: (31, 51, 61, 71), 10: (11, 31, 41), 20: (31, 41), 40: (11,)},
    ("LM", 4): {5: (11, 31, 71, 91), 10: (11, 31, 61), 20: (11, 61), 40: (61,)},
    ("Recommendation", 1): {512: (21, 41, 71, 91), 1024: (21, 51, 91), 2048: (21, 41), 4096: (41,)},
}
_ADAPTS: Final = ("ResNet-18", "ResNet-50", "LM", "Recommendation")  # Transformers keep their batch under Accordion


def steps_per_epoch(model: str, batch: int) -> int:
    return ceil(SAMPLES[model] / batch)


def doublings(model: str, gang: int, first: int) -> tuple[int, ...]:
    """Epochs at which a job's batch doubles under gradient noise; none for most."""
    return _DOUBLINGS.get((model, gang), {}).get(first, ())


def gns_batch(model: str, gang: int, first: int, epoch: int) -> int:
    passed = sum(epoch >= at for at in doublings(model, gang, first))
    return int(min(first * 2**passed, LARGEST.get(model, first)))


def critical(model: str, first: int, epoch: int, *, planned: bool = False) -> bool:
    """Whether Accordion keeps the small batch in this epoch; `planned`: as the planner's profile has it."""
    if model == "LM":
        return epoch < 10
    if model == "ResNet-50":
        return epoch % 30 < 10
    if model == "ResNet-18":
        return epoch < (20 if first == 256 else 10) or 150 <= epoch < 160 or 250 <= epoch < 260
    if model == "Recommendation":
        start = {512: 30, 1024: 30, 2048: 40}.get(first, 10)
        return epoch < start or (planned and (60 <= epoch < 70 or 80 <= epoch < 90))
    return True


def accordion_batch(model: str, first: int, epoch: int) -> int:
    """The batch size that Accordion wants in this epoch."""
    return first if model not in _ADAPTS or critical(model, first, epoch) else LARGEST[model]


def profile(model: str, mode: str, gang: int, first: int, epochs: int) -> list[int]:
    """The batch size of every epoch, as the planner and the fair finish time see it."""
    if mode == "accordion" and model in _ADAPTS:
        small = (epoch <= 0.3 * epochs or critical(model, first, epoch, planned=True) for epoch in range(epochs))
        return [first if keeps else LARGEST[model] for keeps in small]
    rising = doublings(model, gang, first) if mode == "gns" else ()
    if not rising or epochs <= rising[0]:
        return [first] * epochs
    sizes: list[int] = []
    for start, stop in pairwise((0, *rising, epochs)):
        sizes += [gns_batch(model, gang, first, start)] * (min(stop, epochs) - start)
    if len(rising) > 1 and epochs - 1 >= rising[1]:
        sizes[-1] = first
    return sizes
