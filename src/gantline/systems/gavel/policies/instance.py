"""What a Gavel policy is asked: jobs with their speeds on every device type, and how many devices there are.

Notation of the paper (Gavel, OSDI 2020, section 3): ``throughput[m, k]`` is T, ``scale`` the gang sizes, ``capacity``
the number of devices of each type. A throughput of 0 says "cannot run there"; an unknown one is refused.
Times are relative to now: ``elapsed`` since arrival, ``deadline`` seconds left (infinite where there is none).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.checks import column, matrix, pair_rows, refuse_pairs, refuse_where


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two jobs that may share devices: which, and how fast each of the two is then on every type."""

    members: Ints  # [p, 2] positions in the instance, first < second
    throughput: Floats  # [p, 2, k]

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True, slots=True)
class Entity:
    """An owner of jobs, with a weight among owners and a rule for the jobs inside (section 4.3)."""

    name: str
    weight: float = 1.0
    rule: Literal["fairness", "fifo"] = "fairness"


@dataclass(frozen=True, slots=True)
class Instance:
    """One question to a policy. Build it with :meth:`of`, which checks; jobs stand in the order that settles ties."""

    types: tuple[str, ...]
    capacity: Floats  # [k]
    jobs: tuple[Hashable, ...]
    throughput: Floats  # [m, k] steps per second of the whole gang
    scale: Floats  # [m] devices of a gang
    weight: Floats  # [m] priority weights
    pairs: Pairs | None = None
    elapsed: Floats | None = None  # [m] seconds since arrival
    steps: Floats | None = None  # [m] steps left
    price: Floats | None = None  # [k] money per device-hour
    deadline: Floats | None = None  # [m] seconds left to the deadline
    entities: tuple[Entity, ...] = ()
    entity: Ints | None = None  # [m] position in ``entities``

    @classmethod
    def of(
        cls,
        *,
        types: Sequence[str],
        capacity: Any,
        throughput: Any,
        jobs: Sequence[Hashable] | None = None,
        scale: Any = 1,
        weight: Any = 1,
        pairs: tuple[Any, Any] | None = None,
        elapsed: Any = None,
        steps: Any = None,
        price: Any = None,
        deadline: Any = None,
        entities: Sequence[Entity] = (),
        entity: Any = None,
    ) -> Instance:
        """A checked instance; every refusal names the job, the device type and the remedy."""
        names = tuple(types)
        speeds = matrix("throughput", throughput, jobs, names)
        ids: tuple[Hashable, ...] = tuple(range(len(speeds))) if jobs is None else tuple(jobs)
        if len(set(ids)) != len(ids):
            raise UsageError("a job is listed twice", where="jobs")
        refuse_where(speeds < 0, ids, names, "throughput is negative", "use 0 where the job cannot run")
        amount = column("capacity", capacity, len(names), names)
        refuse_where(amount < 0, names, None, "capacity is negative", "use 0 for a type without devices")
        gang = column("scale factor", scale, len(ids), ids)
        refuse_where(gang <= 0, ids, None, "scale factor is not positive", "a gang has at least one device")
        share = column("weight", weight, len(ids), ids)
        refuse_where(share <= 0, ids, None, "weight is not positive", "weights are above 0")
        together = None
        if pairs is not None:
            members, rates = pair_rows(*pairs, ids, names)
            refuse_pairs(members, rates, speeds, gang, ids, names)
            together = Pairs(members, rates)
        left = None if steps is None else column("steps", steps, len(ids), ids)
        if left is not None:
            refuse_where(left < 0, ids, None, "steps left are negative", "finished jobs must not be passed")
        money = None if price is None else column("price", price, len(names), names)
        if money is not None:
            refuse_where(money <= 0, names, None, "price is not positive", "give a price above 0 for every type")
        owner = None
        if entities:
            owner = column("entity", entity, len(ids), ids).astype(np.int64)
            refuse_where((owner < 0) | (owner >= len(entities)), ids, None, "entity is unknown", "name one of the entities")
        return cls(
            types=names,
            capacity=amount,
            jobs=ids,
            throughput=speeds,
            scale=gang,
            weight=share,
            pairs=together,
            elapsed=None if elapsed is None else column("elapsed", elapsed, len(ids), ids),
            steps=left,
            price=money,
            deadline=None if deadline is None else column("deadline", deadline, len(ids), ids, infinite=True),
            entities=tuple(entities),
            entity=owner,
        )

    def __len__(self) -> int:
        return len(self.jobs)

    def needing(self, *fields: str) -> tuple[Floats, ...]:
        """The optional columns a policy cannot do without."""
        found = []
        for field in fields:
            value = getattr(self, field)
            if value is None:
                raise UsageError(f"this policy needs '{field}' of every job", where="gavel", fix=f"pass {field}=")
            found.append(value)
        return tuple(found)

    def without_pairs(self) -> Instance:
        """The same question with space sharing forbidden."""
        return self if self.pairs is None else replace(self, pairs=None)

    def subset(self, chosen: Ints, capacity: Floats | None = None) -> Instance:
        """The question restricted to some of the jobs; pairs survive where both members do."""
        place = np.full(len(self), -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        together = None
        if self.pairs is not None:
            members = place[self.pairs.members]
            whole = (members >= 0).all(axis=1)
            together = Pairs(members[whole], self.pairs.throughput[whole])

        def pick(values: Any) -> Any:
            return None if values is None else values[chosen]

        return replace(
            self,
            capacity=self.capacity if capacity is None else capacity,
            jobs=tuple(self.jobs[i] for i in chosen),
            throughput=self.throughput[chosen],
            scale=self.scale[chosen],
            weight=self.weight[chosen],
            pairs=together,
            elapsed=pick(self.elapsed),
            steps=pick(self.steps),
            deadline=pick(self.deadline),
            entity=pick(self.entity),
        )
