"""What a Gavel policy is asked: jobs with their speeds on every device type, and how many devices there are.

Notation of the paper (Gavel, OSDI 2020, section 3): ``throughput[m, k]`` is T, ``scale`` the gang sizes, ``capacity``
the number of devices of each type. A throughput of 0 says "cannot run there"; an unknown one is refused.
Times are relative to now: ``elapsed`` since arrival, ``deadline`` seconds left (infinite where there is none).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError, near

# Checks of an instance: each mistake is named by job, device type and remedy; nothing becomes a silent zero.

Names = Sequence[Hashable]


def numbers(what: str, values: Any) -> Floats:
    """The values as floats, or a refusal that shows the first one that is no number."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        for entry in _leaves(values):
            try:
                float(entry)
            except (TypeError, ValueError):
                raise UsageError(f"{entry!r} is not a number", where=what) from None
        raise UsageError("rows differ in length", where=what, fix="give one entry per device type") from None


def matrix(what: str, values: Any, jobs: Names | None, types: Sequence[str]) -> Floats:
    """A [jobs, types] table without gaps."""
    table = numbers(what, values)
    table = table.reshape(0, len(types)) if table.size == 0 else table
    rows = table.shape[0] if jobs is None else len(jobs)
    if table.shape != (rows, len(types)):
        raise UsageError(
            f"is of shape {table.shape}, not {(rows, len(types))}",
            where=what,
            fix="one row per job, one column per type",
        )
    names: Names = range(rows) if jobs is None else jobs
    refuse_where(np.isnan(table), names, types, f"{what} is missing", "add the entry, or 0 where the job cannot run")
    refuse_where(np.isinf(table), names, types, f"{what} is infinite", "give a finite number")
    table.setflags(write=False)
    return table


def column(what: str, values: Any, length: int, names: Names, *, infinite: bool = False) -> Floats:
    """One number per job (or type); a single number stands for all."""
    if values is None:
        raise UsageError("is not given", where=what)
    array = numbers(what, values)
    array = np.full(length, array) if array.ndim == 0 else array
    if array.shape != (length,):
        raise UsageError(f"has {array.size} entries, not {length}", where=what)
    refuse_where(np.isnan(array), names, None, f"{what} is missing", "add the entry")
    if not infinite:
        refuse_where(np.isinf(array), names, None, f"{what} is infinite", "give a finite number")
    array.setflags(write=False)
    return array


def refuse_where(wrong: NDArray[np.bool_], names: Names, types: Sequence[str] | None, what: str, fix: str) -> None:
    """Refuse the first entry that is wrong, and say how many more there are."""
    if not wrong.any():
        return
    places = np.argwhere(wrong)
    where = f"'{names[places[0][0]]}'" if types is None else f"job '{names[places[0][0]]}' on '{types[places[0][1]]}'"
    more = f", and {len(places) - 1} more" if len(places) > 1 else ""
    raise UsageError(what + more, where=where, fix=fix)


def pair_rows(members: Any, throughput: Any, jobs: Names, types: Sequence[str]) -> tuple[Ints, Floats]:
    """Pairs with the earlier job first; rows that join a job with itself or name it twice are refused."""
    who = np.array(members, dtype=np.int64).reshape(-1, 2)
    rates = numbers("pair throughput", throughput).reshape(len(who), 2, len(types))
    if who.size and (who.min() < 0 or who.max() >= len(jobs)):
        raise UsageError("a pair names a job that is not listed", where="pairs")
    if (who[:, 0] == who[:, 1]).any():
        raise UsageError("a job is paired with itself", where="pairs")
    late = who[:, 0] > who[:, 1]
    who[late] = who[late, ::-1]
    rates[late] = rates[late, ::-1]
    codes = np.sort(who[:, 0] * len(jobs) + who[:, 1])
    if (codes[1:] == codes[:-1]).any():
        raise UsageError("a pair is listed twice", where="pairs")
    who.setflags(write=False)
    rates.setflags(write=False)
    return who, rates


def refuse_pairs(who: Ints, rates: Floats, speeds: Floats, scale: Floats, jobs: Names, types: Sequence[str]) -> None:
    """Refuse pairs with gaps, negative or one-sided entries, and pairs on a type on which a member cannot run."""

    def refuse(wrong: NDArray[np.bool_], what: str, fix: str) -> None:
        if wrong.any():
            p, j = np.argwhere(wrong)[0]
            a, b = (jobs[i] for i in who[p])
            raise UsageError(what, where=f"pair '{a}' + '{b}' on '{types[j]}'", fix=fix)

    refuse(_either(np.isnan(rates)), "throughput is missing", "add both numbers, or 0 and 0 if they cannot share")
    refuse(_either(rates < 0), "throughput is negative", "use 0 and 0 where the two cannot share")
    one_sided = (rates[:, 0] > 0) != (rates[:, 1] > 0)
    refuse(one_sided, "only one of the two makes progress", "give both numbers, or 0 and 0 if they cannot share")
    alone = speeds[who]
    refuse(_either((rates > 0) & (alone == 0)), "a member cannot run there alone", "correct its own throughput")
    unequal = (scale[who[:, 0]] != scale[who[:, 1]])[:, None] & _either(rates > 0)
    refuse(unequal, "the gangs differ in size", "only gangs of equal size can share devices")


def _either(wrong: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Per pair and type: is it so for one of the two members?"""
    return np.asarray(wrong[:, 0] | wrong[:, 1])


def _leaves(values: Any) -> Iterator[Any]:
    """The entries of nested lists of any shape."""
    if isinstance(values, (list, tuple, np.ndarray)):
        for value in values:
            yield from _leaves(value)
    else:
        yield values


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


# Owners of jobs, as a user writes them: ``research=2:fairness,product=1:fifo`` (Gavel, OSDI 2020, section 4.3).


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
