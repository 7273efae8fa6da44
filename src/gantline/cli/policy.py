"""``gantline policy list|show|check``: which policies there are, what they take, whether one keeps the rules."""

from __future__ import annotations

import math
from typing import Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.arguments import PolicyName, Settings, settings_of, time_of
from gantline.cli.console import Column, Form, Sheet, is_watched, say, show, show_object, show_text, table
from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.progress import counted
from gantline.core.errors import GantlineError, UsageError
from gantline.core.policy import Policy, parameters
from gantline.engine.assembly.guard import asked, guard_of
from gantline.engine.imitations.registry import read_in
from gantline.lab.conformance import check_policy as run_suite
from gantline.policies.registry import find_policy, policy_names
from gantline.simulator.key_form import key_form
from gantline.traces.files.policies import load_policy, opened, policy_class, policy_of

app = App(name="policy")


@app.command(name="list")
def list_policies(*, output: Form = "table") -> None:
    """List all policies, ours and those of installed packages."""
    found = [(name, find_policy(name)) for name in policy_names()]
    rows = [(name, sentence_of(policy), sorted(needs_of(policy)), policy.paper) for name, policy in found]
    show(
        Sheet((Column("policy"), Column("what it does"), Column("needs", spell=", ".join), Column("paper")), rows),
        output,
    )


@app.command(name="show")
def show_policy(
    name: PolicyName,
    /,
    *,
    output: Form = "table",
) -> None:
    """Show one policy: its parameters with types, defaults and meaning, its paper, what it needs, how ties fall."""
    policy, (_, kept) = policy_class(name), opened(name)
    listed = [{"name": p.name, "type": p.type, "default": p.default, "takes": p.takes, "help": p.help} for p in parameters(policy)]
    facts = {
        "policy": policy.name or policy.__name__,
        "what it does": sentence_of(policy),
        "paper": policy.paper,
        "needs": sorted(needs_of(policy)),
        "ties": policy.ties,
        "key": _key_form(policy),
        "imitated in": _imitations(policy),
    } | ({"set in the file": [f"{key}={value}" for key, value in kept.items()]} if kept else {})
    if output == "table" and is_watched():
        _show_to_person(facts, listed)
    elif output == "csv":
        show(Sheet.of("name type default takes help", [list(one.values()) for one in listed]), "csv")
    elif output == "json":
        show_object({**facts, "parameters": listed}, "json")
    else:
        show_object({**facts, **{f"parameter {p['name']}": _in_a_line(p) for p in listed}}, "table")


def _in_a_line(parameter: dict[str, Any]) -> str:
    takes = f" ({parameter['takes']})" if parameter["takes"] else ""
    return f"{parameter['type']} = {parameter['default']}{takes}; {parameter['help']}"


def _show_to_person(facts: dict[str, Any], listed: list[dict[str, Any]]) -> None:
    facts = {key: ", ".join(value) if isinstance(value, list) else value for key, value in facts.items()}
    show_text(table(Sheet((Column(""), Column("")), [pair for pair in facts.items() if pair[1]])))
    show_text("")
    if not listed:
        show_text("It has no parameters.")
        return
    rows = [(p["name"], p["type"], str(p["default"]), p["takes"], p["help"]) for p in listed]
    show_text(table(Sheet((Column("--set"), Column("type"), Column("default"), Column("takes"), Column("meaning")), rows)))


@app.command(name="check")
def check_policy(
    name: PolicyName,
    /,
    *,
    set_: Settings = None,
    limit: Annotated[str, Parameter(help="CPU time after which no further story is begun.")] = "10m",
    budget: Annotated[str, Parameter(help="Time on the clock for one decision of a policy that is not part of this package.")] = "60",
    output: Form = "table",
) -> int:
    """Put a policy through the conformance suite: a line per rule, exit code 1 if one is broken."""
    with counted("") as tick:
        report = run_suite(
            load_policy(name, settings_of(set_)),
            limit=time_of(limit, "--limit", above=True) or math.inf,
            budget=time_of(budget, "--budget", above=True) or math.inf,
            on_story=tick,
        )
    rows = [(finding.result, finding.rule, finding.message) for finding in report.findings]
    show(Sheet.of("result rule message", rows), output)
    return 0 if report.passed else 1


@app.command(name="use")
def use_policy(name: PolicyName, /, *, set_: Settings = None, home: HomeOption = None) -> None:
    """Let another policy decide in the running service, from now on."""
    name, kept = opened(name)
    with connect(home) as client:
        answer = client.use_policy(name, kept | settings_of(set_))
    for note in answer.get("notes", ()):
        say(note)
    print(name)


def _imitations(policy: type[Policy]) -> list[str]:
    """The regimes that run a program of their own in its place, with the parameters that they read; all others they refuse."""
    try:
        found = read_in(policy_of(policy))
    except GantlineError:
        return []
    return [f"{regime} (reads {' '.join(names) or 'no parameter'})" for regime, names in found.items()]


def _key_form(policy: type[Policy]) -> str:
    """How the key of a policy with its default parameters is evaluated in a simulation."""
    try:
        made = policy_of(policy)
    except UsageError:  # it has parameters without a default
        return ""
    return key_form(made)


def sentence_of(policy: type[Policy]) -> str:
    """The first sentence of a policy's documentation."""
    return " ".join((policy.__doc__ or "").split("\n\n")[0].split())


def needs_of(policy: type[Policy]) -> frozenset[str]:
    """What a policy with its default parameters needs to know; its class alone may not say."""
    try:
        made = policy_of(policy)
    except UsageError:  # it has parameters without a default
        return policy.needs if isinstance(policy.needs, frozenset) else frozenset()
    return asked(made, guard_of(made, None), lambda: frozenset(made.needs))
