"""Checks of an instance: each mistake is named by job, device type and remedy; nothing becomes a silent zero."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError

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
