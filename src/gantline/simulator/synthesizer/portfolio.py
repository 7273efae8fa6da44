"""What the synthesizer chooses from: every policy of its portfolio behind every admission rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from gantline.core.errors import UsageError
from gantline.core.policy import Policy
from gantline.policies.admission.rules import find_admission
from gantline.traces.files.policies import load_placement, load_policy

WHERE = "policy 'synthesizer'"
ITSELF = ("synthesizer", "auto")
_OWN_CLASS = "gantline.simulator.synthesizer.policy.Synthesizer"
_ENTRY = re.compile(r"(?P<name>[^()]+?)(?:\((?P<settings>[^()]*)\))?")


@dataclass(frozen=True)
class Combination:
    """One policy behind one admission rule, its gangs placed by one rule; `load_limit` is in times the cluster's GPUs."""

    name: str
    member: str  # the policy as the portfolio writes it; its memory is kept while another is in charge
    policy: Policy
    admission: str
    load_limit: float
    placement: str = ""  # empty: the run's


@lru_cache(maxsize=32)
def combinations(portfolio: tuple[str, ...], admissions: tuple[str, ...], placements: tuple[str, ...] = ()) -> tuple[Combination, ...]:
    """All of them, in order: the first wins where several are alike."""
    if not portfolio:
        raise UsageError("the portfolio is empty", where=WHERE, fix="--set portfolio=fifo,las,srtf")
    for what, names in (("portfolio", portfolio), ("admissions", admissions), ("placements", placements)):
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"'{name}' stands twice in {what}", where=WHERE, fix="name it once")
    found = []
    for member in portfolio:
        policy = _policy(member)
        for admission in admissions or ("accept-all",):
            rule = find_admission(admission)
            if rule.has_quota:
                raise UsageError(f"'{admission}' is a quota, which belongs to the run", where=WHERE, fix="use accept-all or load-limit:1.2")
            if rule.load_limit != float("inf") and not policy.ranks:
                text = f"'{member}' makes plans for all jobs that it sees, so none can be kept from it by '{admission}'"
                raise UsageError(text, where=WHERE, fix="use accept-all, or leave the policy out")
            behind = member if admission == "accept-all" else f"{member}+{admission}"
            for placement in placements or ("",):
                _check_placement(member, policy, placement)
                name = f"{behind}@{placement}" if placement else behind
                found.append(Combination(name, member, policy, admission, rule.load_limit, placement))
    return tuple(found)


def _check_placement(member: str, policy: Policy, placement: str) -> None:
    """A placement rule that is not known, or that the policy does not use, is refused."""
    if not placement:
        return
    load_placement(placement)
    if not policy.ranks:
        text = f"'{member}' says itself which devices its gangs get, so '{placement}' would change nothing"
        raise UsageError(text, where=WHERE, fix="leave out placements, or the policy")


def _policy(member: str) -> Policy:
    """A policy as a portfolio writes it: ``las``, ``las(service=gpu-time)``, ``fifo(backfill=easy)``."""
    read = _ENTRY.fullmatch(member.strip())
    if read is None:
        raise UsageError(f"'{member}' cannot be read", where=WHERE, fix="write a policy as las or las(service=gpu-time)")
    name, settings = read["name"].strip(), {}
    for part in (read["settings"] or "").split(";"):
        key, equals, value = part.partition("=")
        if part.strip():
            if not equals:
                raise UsageError(f"'{part}' is no setting", where=WHERE, fix=f"write {name}(parameter=value)")
            settings[key.strip()] = value.strip()
    given: dict[str, object] = settings
    policy = None if name in ITSELF else load_policy(name, given)  # a file may be one, too
    if policy is None or any(f"{kind.__module__}.{kind.__name__}" == _OWN_CLASS for kind in type(policy.observed).__mro__):
        raise UsageError(f"the portfolio holds the synthesizer itself, as '{name}'", where=WHERE, fix="name other policies")
    return policy
