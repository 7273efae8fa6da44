"""Owners of jobs, as a user writes them: ``research=2:fairness,product=1:fifo`` (Gavel, OSDI 2020, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gantline.core.errors import UsageError, near
from gantline.systems.gavel.policies.instance import Entity


def parse_entities(text: str) -> tuple[Entity, ...]:
    """Entities from text; the rule may be left out (fairness)."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = part.partition("=")
        weight, _, rule = rest.partition(":")
        rule = rule or "fairness"
        try:
            number = float(weight or 1.0)
        except ValueError:
            number = 0.0
        if not number > 0 or rule not in ("fairness", "fifo") or not name:
            raise UsageError(f"'{part}' is no entity", where="entities", fix="write name=weight:rule, the rule fairness or fifo")
        found.append(Entity(name, number, "fifo" if rule == "fifo" else "fairness"))
    return tuple(found)


def entities_of(entities: tuple[Entity, ...], owners: Sequence[str], jobs: Sequence[str]) -> dict[str, Any]:
    """The columns of an instance that give each job's owner; a job without one is refused."""
    place = {entity.name: i for i, entity in enumerate(entities)}
    for job, owner in zip(jobs, owners):
        if owner not in place:
            raise UsageError(f"belongs to '{owner}', which is no entity", where=f"job '{job}'", fix=near(owner, place))
    return {"entities": entities, "entity": np.array([place[owner] for owner in owners], dtype=np.int64)}
