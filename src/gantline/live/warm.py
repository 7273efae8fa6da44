"""Warms a policy up: it serves a few made-up jobs on virtual time before it decides in earnest.

Kernels that were never used on this machine are compiled when they are first called, which may take a minute. Better here, in the thread of
the request for the policy, than in the scheduler's, where all requests would wait.
"""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.inputs import Submit
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.assembly.rules import RunRules
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.simulation import Simulation

_WORK = 60.0  # seconds
_END = 3600.0
RULES = RunRules()


def rehearse(policy: Policy, cluster: Cluster, rules: RunRules = RULES) -> list[str]:
    """Serve three jobs under the rules of the run; the error comes back as text."""
    most = max((node.gpus for node in cluster.nodes), default=1)
    sizes = [min(size, most) for size in (2, 1, 3)] if most else []
    engine = rules.engine(rules.state(Tables.empty(cluster)), rules.policy(policy))
    jobs = [Submit(float(k), {"id": str(k), "gpus": size, "estimate": _WORK}, work=_WORK) for k, size in enumerate(sizes)]
    Simulation(engine, until=_END, node_events=tuple(jobs), driver=Acknowledged(engine)).run()
    return [str(one) for one in engine.incidents]
