"""How a policy's key is evaluated in a simulation: compiled, or by asking it at every decision, and why."""

from __future__ import annotations

from typing import Any

from gantline.assembly.guard import Guard, asked, guard_of
from gantline.assembly.rules import RunRules
from gantline.core.policy import OrderPolicy, Policy
from gantline.drivers.python_keys.hint import Hint
from gantline.drivers.python_keys.read import read_key
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.files.clusters import read_cluster
from gantline.workload.generators import generate


def key_form(policy: Policy) -> str:
    """One sentence, for the usual case of one device type and rounds."""
    if not isinstance(policy, OrderPolicy):
        return "none: it makes plans, and is asked at every decision"
    guard: Guard[Any] | None = guard_of(policy, None)
    if asked(policy, guard, policy.linear) is not None:
        return "compiled: it is declared"
    found = read_key(policy, usual_state(), guard)
    if found.once:
        return "compiled: key() is asked once about all jobs, because it reads nothing that changes"
    unasked = "; valid_until() is not asked, because the key says when the order changes" if found.hint is Hint.BY_SNAPSHOT else ""
    if found.declared is not None:
        return f"compiled: key() is read once, and is as fast as a declared one{unasked}"
    if found.written is not None:
        return f"compiled: key() is read once, and evaluated at every decision{unasked}"
    if found.by_job is not None and not found.by_job.reads.ages:
        return f"asked at every decision about those jobs that may have changed, because {found.why}"
    hint = "" if policy.per_job or type(policy).decide is not OrderPolicy.decide else "; if it looks at each job by itself, say per_job"
    return f"asked at every decision, because {found.why}{hint}"


def usual_state() -> State:
    """A handful of jobs that have not arrived, on machines of one kind."""
    rules = RunRules(Regime(round=60.0))
    return rules.state(rules.load(generate("philly", seed=0, jobs=8, load=1.0, gpus=64), read_cluster("8x8")))
