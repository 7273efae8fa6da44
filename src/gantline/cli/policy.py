"""``gantline policy list|show|check``: which policies there are, what they take, whether one keeps the rules."""

from __future__ import annotations

import math

from cyclopts import App

from gantline.cli.arguments import PolicyName, Settings, settings_of, time_of
from gantline.cli.console import Column, Form, Sheet, say, show, show_about
from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.progress import counted
from gantline.core.errors import GantlineError, UsageError
from gantline.core.policy import Policy, parameters
from gantline.engine.assembly.guard import asked, guard_of
from gantline.engine.imitations.registry import read_in
from gantline.lab.conformance import ConformanceReport
from gantline.lab.conformance import check_policy as run_suite
from gantline.policies.registry import find_policy, policy_names
from gantline.simulator.simulate import key_form
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
    listed = [(p.name, p.type, p.default, p.takes, p.help) for p in parameters(policy)]
    facts = {
        "policy": policy.name or policy.__name__,
        "what it does": sentence_of(policy),
        "paper": policy.paper,
        "needs": sorted(needs_of(policy)),
        "ties": policy.ties,
        "key": _key_form(policy),
        "imitated in": _imitations(policy),
    } | ({"set in the file": [f"{key}={value}" for key, value in kept.items()]} if kept else {})
    names = {"name": "--set", "type": "type", "default": "default", "takes": "takes", "help": "meaning"}
    columns = tuple(Column(name, title=title, spell=str) for name, title in names.items())
    lines = {f"parameter {name}": _in_a_line(*more) for name, *more in listed}
    show_about(facts, "parameters", Sheet(columns, listed), lines, output)


def _in_a_line(kind: str, default: object, takes: str, meaning: str) -> str:
    return f"{kind} = {default}{f' ({takes})' if takes else ''}; {meaning}"


@app.command(name="check")
def check_policy(
    name: PolicyName,
    /,
    *,
    set_: Settings = None,
    limit: str = "10m",
    budget: str = "60",
    output: Form = "table",
) -> int:
    """Put a policy through the conformance suite: a line per rule, exit code 1 if one is broken.

    Args:
        limit: CPU time after which no further scenario is begun.
        budget: Time on the clock for one decision of a policy that is not part of this package.
    """
    with counted("") as tick:
        report = run_suite(
            load_policy(name, settings_of(set_)),
            limit=time_of(limit, "--limit", above=True) or math.inf,
            budget=time_of(budget, "--budget", above=True) or math.inf,
            on_scenario=tick,
        )
    return show_findings(report, output)


def show_findings(report: ConformanceReport, output: Form) -> int:
    """A line per rule; the exit code says whether all are kept."""
    show(Sheet.of("result rule message", [(one.result, one.rule, one.message) for one in report.findings]), output)
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
