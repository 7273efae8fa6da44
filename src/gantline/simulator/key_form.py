"""How a policy's key is evaluated in a simulation: compiled, or by asking it at every decision, and why."""

from __future__ import annotations

from gantline.core.policy import OrderPolicy, Policy
from gantline.engine.assembly.guard import guard_of
from gantline.engine.assembly.rules import RunRules
from gantline.engine.drivers.key_reading import Hint, read_key
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.traces.files.clusters import read_cluster
from gantline.traces.generators import generate


def key_form(policy: Policy) -> str:
    """One sentence, for the usual case of one device type and rounds."""
    if not isinstance(policy, OrderPolicy):
        return "none: it makes plans, and is asked at every decision"
    found = read_key(policy, usual_state(), guard_of(policy, None))
    unasked = "; valid_until() is not asked, because the key says when the order changes" if found.hint is Hint.BY_SNAPSHOT else ""
    if found.key is not None:
        return f"compiled: key() is read once, and a decision costs what changes{unasked}"
    return f"asked at every decision, because {found.why_asked}"


def usual_state() -> State:
    """A handful of jobs that have not arrived, on machines of one kind."""
    rules = RunRules(Regime(round=60.0))
    return rules.state(rules.load(generate("philly", seed=0, jobs=8, load=1.0, gpus=64), read_cluster("8x8")))
