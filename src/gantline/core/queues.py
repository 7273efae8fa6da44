"""Queues: a tree with weights, quotas and borrowing; users have the same fields and no children."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gantline.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue: its jobs, and those of the queues below it, are promised `quota` devices and may borrow `borrow` more.

    An infinite quota is none at all. To borrow infinity (or True) means whatever others leave idle, zero (or False) nothing.
    `admission.quotas` has the whole rule.
    """

    name: str
    weight: float = 1.0
    quota: float = math.inf
    borrow: float = 0.0
    parent: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.borrow, bool):
            object.__setattr__(self, "borrow", math.inf if self.borrow else 0.0)
        if not self.weight > 0:
            raise UsageError(f"queue '{self.name}' has weight {self.weight}", fix="use a weight above zero")
        if not self.quota >= 0:
            raise UsageError(f"queue '{self.name}' has quota {self.quota}", fix="use a quota of zero or more")
        if not self.borrow >= 0:
            raise UsageError(f"queue '{self.name}' may borrow {self.borrow}", fix="use zero or more, or inf for no limit")

    @property
    def bounded(self) -> bool:
        """Whether it has a quota at all."""
        return math.isfinite(self.quota)


def bounds_in_words(quota: float, borrow: float) -> str:
    """What a queue with this quota may hold, and what of it is borrowed."""
    if math.isinf(quota):
        return "has no quota: nothing bounds it but the queues above it"
    if math.isinf(borrow):
        return f"is promised {quota:g} devices, and may borrow whatever others leave idle"
    return f"may hold {quota + borrow:g} devices: {quota:g} are promised, and " + (
        f"{borrow:g} may be borrowed" if borrow else "it borrows none"
    )


def ancestors(name: str) -> tuple[str, ...]:
    """A queue and those above it: ``a/b/c`` -> (``a/b/c``, ``a/b``, ``a``)."""
    parts = name.split("/")
    return tuple("/".join(parts[: i + 1]) for i in reversed(range(len(parts))))


def known_names(tree: Iterable[str]) -> set[str]:
    """Every queue that exists: those of the tree, those above them, and the one without a name, which holds all other jobs."""
    return {"", *(above for name in tree for above in ancestors(name))}


def queues_as_text(value: Any, where: str) -> str:
    """Queues as `parse_queues` reads them: a text, or a mapping from names to quotas, texts or queues."""
    if not isinstance(value, Mapping):
        return str(value)
    fields = {name: f"{one.quota}:{one.borrow}:{one.weight}" if isinstance(one, Queue) else str(one) for name, one in value.items()}
    return ",".join(f"{name}={numbers}" for name, numbers in fields.items())


def parse_queues(text: str) -> dict[str, Queue]:
    """Queues as people write them, ``research=4,research/nlp=2:0,batch=1:2:0.5``: quota, borrowing limit, weight."""
    found: dict[str, Queue] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, numbers = part.partition("=")
        try:
            given = [float(number) for number in numbers.split(":")]
        except ValueError:
            given = []
        if not sign or not name.strip() or not 1 <= len(given) <= 3:
            raise UsageError(
                f"'{part}' is not a queue's quota",
                where="--queues",
                fix="write NAME=QUOTA[:BORROW[:WEIGHT]], as research=4 or research=4:2",
            )
        if name.strip() in found:
            raise UsageError(f"queue '{name.strip()}' is given twice", where="--queues", fix="keep one of them")
        quota, borrow, weight = (*given, *(0.0, 1.0)[len(given) - 1 :])
        found[name.strip()] = Queue(name.strip(), weight, quota, borrow)
    return found
