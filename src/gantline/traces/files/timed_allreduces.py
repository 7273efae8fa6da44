"""Measured AllReduces: ``plan,servers,size,seconds``; a plan is direct, ring, halving-doubling, one-server, or levels such as 6x2."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import GantlineError
from gantline.models.allreduce import AllReducePlan
from gantline.models.allreduce_fit import TimedAllReduce
from gantline.traces.importers.table import number, read_foreign, text

KINDS = ("direct", "ring", "halving-doubling", "one-server")


def parse_plan(word: str) -> AllReducePlan | None:
    """The plan of that name; None: no plan is called so."""
    if word in KINDS:
        return AllReducePlan(word)
    factors = word.split("x")
    return AllReducePlan("levels", tuple(map(int, factors))) if all(factor.isdecimal() for factor in factors) else None


def read_timed(src: Path) -> list[TimedAllReduce]:
    """The measurements of a file, each checked against its plan."""
    raw = read_foreign(src, ("plan", "servers", "size", "seconds"))
    numbers = (number(raw, name, required=True).to_list() for name in ("servers", "size", "seconds"))
    found = []
    for row, (word, servers, size, seconds) in enumerate(zip(text(raw, "plan").to_list(), *numbers)):
        plan = parse_plan(word)
        if plan is None:
            raise raw.error(f"no plan is called '{word}'", row=row, field="plan", fix=f"{', '.join(KINDS)}, or levels such as 6x2")
        if servers != int(servers) or servers < 2 or size <= 0.0:
            raise raw.error(
                f"{size:g} units on {servers:g} servers", row=row, field="servers", fix="two servers or more, a size above zero"
            )
        try:
            plan.levels(int(servers), size)
        except GantlineError as error:
            raise raw.error(error.what, row=row, field="plan", fix=error.fix) from None
        found.append(TimedAllReduce(plan, int(servers), size, seconds))
    return found
