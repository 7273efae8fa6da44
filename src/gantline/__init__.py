"""Gantline: one scheduler, two clocks.

The names below are the public API; they are imported when first used, so that ``import gantline`` is instant.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, which takes as long to import as all else that the supervisor of a job needs
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

_EXPORTS = {
    "simulate": "gantline.simulator.simulate",
    "simulate_in_blocks": "gantline.simulator.in_blocks",
    "compare": "gantline.lab.experiment.api",
    "advise": "gantline.lab.experiment.api",
    "sweep": "gantline.lab.experiment.api",
    "tune": "gantline.lab.experiment.api",
    "fill": "gantline.lab.experiment.cluster_filling",
    "rollout": "gantline.simulator.rollout",
    "Candidate": "gantline.simulator.rollout",
    "Run": "gantline.simulator.run",
    "RunSpec": "gantline.engine.assembly.spec",
    "Trace": "gantline.traces.trace",
    "Cluster": "gantline.core.cluster",
    "Node": "gantline.core.cluster",
    "parse_cluster": "gantline.core.cluster_spec",
    "Policy": "gantline.core.policy",
    "OrderPolicy": "gantline.core.policy",
    "param": "gantline.core.policy",
    "DeviceRule": "gantline.policies.placement.device_rule",
    "FreeDevices": "gantline.policies.placement.device_rule",
    "GangRequest": "gantline.policies.placement.device_rule",
    "Plan": "gantline.core.plan",
    "Assignment": "gantline.core.plan",
    "Assignments": "gantline.core.plan",
    "Part": "gantline.core.plan",
    "Mode": "gantline.core.plan",
    "Misfit": "gantline.core.plan",
    "Reservation": "gantline.core.plan",
    "Refusal": "gantline.core.plan",
    "Snapshot": "gantline.core.snapshot",
    "NodeEvent": "gantline.core.inputs",
    "Costs": "gantline.core.facts",
    "GantlineError": "gantline.core.errors",
    "Client": "gantline.live.service.client",
    "list_systems": "gantline.registry",
    "find_system": "gantline.registry",
}
#: what comes along with a name: the figures of a run
_WITH = {"simulate": "gantline.lab.report.plots", "Run": "gantline.lab.report.plots"}
__all__ = [*_EXPORTS]


#: former names, which go with the next minor version
_FORMER = {"about": "param"}


def __getattr__(name: str) -> Any:
    name = _FORMER.get(name, name)
    if name in _EXPORTS:
        from importlib import import_module

        if name in _WITH:
            import_module(_WITH[name])
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'gantline' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*_EXPORTS, "__version__"])
