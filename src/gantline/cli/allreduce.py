"""``gantline profile allreduce``: what plans of AllReduce cost, which is best, on a tree too, and the constants from measurements."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from cyclopts import App

from gantline.cli.console import Column, Form, Sheet, show, show_object
from gantline.core.errors import UsageError
from gantline.models.links.allreduce import (
    PROTOTYPE,
    AllReducePlan,
    CostConstants,
    best_plan,
    cost_of,
    fit_costs,
    flat_cost,
    plan_tree,
    plans,
    tree_of,
)
from gantline.traces.files.profiles import read_timed

app = App(
    name="allreduce",
    help_epilogue="""Examples:

  gantline profile allreduce --servers 12 --size 100
  gantline profile allreduce --tree 4x16 --slowdowns 4,1 --size 100
  gantline profile allreduce --fit timed.csv -o json""",
)


@app.default
def allreduce(
    *,
    servers: int | None = None,
    tree: str = "",
    slowdowns: str = "",
    size: float = 100.0,
    constants: str = "",
    fit: Path | None = None,
    output: Form = "table",
) -> None:
    """Plans of AllReduce by GenModel's five terms.

    Args:
        servers: How many servers take part.
        tree: Switches from the root down: 4x16 are four switches of 16 servers.
        slowdowns: How many times slower the links of each level are, from the root down: 4,1.
        size: Data on each server, in the units of the constants (10^6 elements).
        constants: alpha,beta,gamma,delta,epsilon,threshold; by default those of a co-author's prototype.
        fit: A table plan,servers,size,seconds: find the constants.
    """
    if sum((servers is not None, bool(tree), fit is not None)) != 1:
        raise UsageError("asks for none of the three, or for several", where="allreduce", fix="one of --servers, --tree and --fit")
    if slowdowns and not tree:
        raise UsageError("slowdowns are of the levels of a tree", where="--slowdowns", fix="add --tree 4x16")
    if fit is not None:
        _fit(fit, output)
        return
    known = _constants(constants)
    seconds = Column("seconds", True, lambda value: f"{value:.6g}")
    if tree:
        made = tree_of(*_levels(tree, slowdowns))
        found = plan_tree(made, size, known)
        rows: list[tuple[object, ...]] = [(one.level, one.name, one.children, str(one.plan), one.seconds) for one in found.switches]
        rows.append(("all", "GenTree", made.servers, "", found.seconds))
        flat = (AllReducePlan("ring"), AllReducePlan("direct"))
        rows += [("all", "flat", made.servers, str(plan), flat_cost(plan, made, size, known)) for plan in flat]
        show(Sheet((Column("level"), Column("switch"), Column("children", True), Column("plan"), seconds), rows), output)
        return
    assert servers is not None
    best, _ = best_plan(servers, size, known)
    listed = sorted(
        ((cost_of(plan, servers, size, known), str(plan)) for plan in plans(servers)), key=lambda one: (one[1] != str(best), one[0])
    )
    show(Sheet((Column("plan"), seconds), [(plan, cost) for cost, plan in listed]), output)


def _fit(src: Path, output: Form) -> None:
    found = fit_costs(read_timed(src))
    known = asdict(found.constants)
    bandwidth = 2.0 * known.pop("beta") + known.pop("gamma")
    summary = {"alpha": known.pop("alpha"), "2_beta_and_gamma": bandwidth, **known, "mean_error": found.error}
    show_object(summary, output)


def _constants(text: str) -> CostConstants:
    if not text:
        return PROTOTYPE
    try:
        alpha, beta, gamma, delta, epsilon, threshold = (float(part) for part in text.split(","))
        return CostConstants(alpha, beta, gamma, delta, epsilon, int(threshold))
    except ValueError:
        fix = "alpha,beta,gamma,delta,epsilon,threshold: 0.004,0.003,0.0008,0.0004,0.0001,9"
        raise UsageError(f"'{text}' is not six numbers", where="--constants", fix=fix) from None


def _levels(tree: str, slowdowns: str) -> tuple[list[int], list[float]]:
    try:
        return [int(part) for part in tree.split("x")], [float(part) for part in slowdowns.split(",") if part]
    except ValueError:
        raise UsageError(f"'{tree}' with slowdowns '{slowdowns}'", where="--tree", fix="--tree 4x16 --slowdowns 4,1") from None
