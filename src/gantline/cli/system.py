"""``gantline system list|show``: what there is of each published system, and what it was held against."""

from __future__ import annotations

from typing import Any

from cyclopts import App

from gantline.cli.console import Column, Form, Sheet, show, show_about
from gantline.registry import KINDS, System, find_system
from gantline.registry import list_systems as all_systems

app = App(name="system")

#: found by the name of their regime, so that a list of them would say the same again
_BEHIND_REGIMES = ("imitations", "scopes")


@app.command(name="list")
def list_systems(*, output: Form = "table") -> None:
    """List the published systems and what each brings: ours, and those of installed packages."""
    rows = [(system.name, system.title, _counts(system), system.brought_by) for system in all_systems()]
    show(Sheet((Column("system"), Column("what it is"), Column("brings", spell=", ".join), Column("package")), rows), output)


@app.command(name="show")
def show_system(name: str, /, *, output: Form = "table") -> None:
    """Show one system: its policies, regimes, trace formats, generators and studies, its papers, and what it was held against and how.

    Args:
        name: A name from `gantline system list`.
    """
    system = find_system(name)
    facts: dict[str, Any] = {"system": system.name, "what it is": system.title, "papers": list(system.papers), "page": _page(system)}
    facts |= {kind: names for kind in KINDS if kind not in _BEHIND_REGIMES and (names := [entry.name for entry in system.entries(kind)])}
    facts |= {"imitated regimes": list(system.imitations)} if system.imitations else {}
    facts |= {"package": system.brought_by}
    held = [(one.what, one.result, one.test) for one in system.held_against]
    columns = (Column("what", title="held against"), Column("result"), Column("test"))
    lines = {"held against": [f"{what}: {result} ({test})" for what, result, test in held]}
    show_about(facts, "held against", Sheet(columns, held), lines, output)


def _counts(system: System) -> list[str]:
    """``3 policies``, ``1 regime``."""
    found = {kind: len(list(system.entries(kind))) for kind in KINDS if kind not in _BEHIND_REGIMES}
    return [f"{count} {kind if count > 1 else KINDS[kind]}" for kind, count in found.items() if count]


def _page(system: System) -> str:
    return f"docs/{system.page}" if system.page and system.brought_by == "gantline" else system.page
