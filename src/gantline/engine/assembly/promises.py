"""Deadlines that a policy promises: kept by a plan that knows every cost and delay of the run, or refused before it begins."""

from __future__ import annotations

from typing import Any

from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.engine.assembly.spec import RunSpec
from gantline.models.model import overrides

_IN_TIME = ("instant", "acknowledged")  # executors that take no time beyond the costs


def check_promises(policy: Policy, spec: RunSpec, model: Any) -> None:
    """Refuse a run in which a promise would be made on delays that no plan can know."""
    name = spec.executor.partition(":")[0] if isinstance(spec.executor, str) else ""
    if not policy.promises or name in _IN_TIME or (name == "measured" and not overrides(model, "leave")):
        return
    why = {
        "measured": "jobs take a while to leave their devices, which its plans do not count",
        "faulty": "starts, stops and messages take times that are not known beforehand",
    }.get(name, "how long that executor takes is not known")
    raise RefusedError(
        f"policy '{policy.name or type(policy).__name__}' promises deadlines, and here {why}",
        where=f"--executor {spec.executor if name else type(spec.executor).__name__}",
        fix="admit every job without a promise (--set admission=off), or use another executor",
    )
