"""``gantline placement list|show|check``: which placement rules there are, what can be counted on, whether one keeps the rules."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Column, Form, Sheet, show, show_object

app = App(name="placement")
RuleName = Annotated[str, Parameter(help="A rule of ours, or FILE.py:RULE.")]


@app.command(name="list")
def list_rules(*, output: Form = "table") -> None:
    """List all placement rules, ours and those of installed packages."""
    from gantline.policies.placement.parts.scores import PART_RULES
    from gantline.policies.placement.rules import find_placement, placement_rules

    parts = [rule for rule in map(find_placement, PART_RULES) if rule.only_parts]
    rows = [(rule.name, rule.what) for rule in (*placement_rules().values(), *parts)]
    show(Sheet((Column("placement"), Column("which devices")), rows), output)


@app.command(name="show")
def show_rule(name: RuleName, /, *, output: Form = "table") -> None:
    """Show one placement rule with its properties."""
    from gantline.traces.files.policies import load_placement

    rule = load_placement(name)
    show_object({"placement": rule.name, "which devices": rule.what, **rule.properties}, output)


@app.command(name="check")
def check_rule(name: RuleName, /, *, output: Form = "table") -> int:
    """Put a placement rule through the conformance suite: a line per rule, exit code 1 if one is broken."""
    from gantline.lab.conformance.placement import check_placement

    report = check_placement(name)
    show(Sheet.of("result rule message", [(one.result, one.rule, one.message) for one in report.findings]), output)
    return 0 if report.passed else 1
