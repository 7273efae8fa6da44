"""The loop of `--regime elasticflow`: ElasticFlow and its deadline baselines as its artifact runs them (docs/design/elasticflow.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gantline.core import columns as c
from gantline.core.errors import RefusedError, UsageError
from gantline.core.tables import Tables
from gantline.drivers.virtual import Simulation
from gantline.imitations.elasticflow.clock import Clock, Jobs, Rules
from gantline.imitations.elasticflow.result import write_result
from gantline.imitations.refusals import refuse
from gantline.policies.elasticflow.settings import DeadlinePolicy
from gantline.workload.trace import Trace

_WHERE = "--regime elasticflow"
_LEVELS = 16  # up to 32,768 GPUs for one job


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace to its end by the artifact's rules and leave the result in the simulation's tables and log."""
    state, policy = simulation.state, simulation.engine.policy
    if not isinstance(policy, DeadlinePolicy):
        raise RefusedError(f"ElasticFlow's simulator has no policy '{policy.name}'", where=_WHERE, fix="it has elasticflow and edf")
    _refuse_what_it_has_not(simulation)
    cluster, chosen = state.tables.cluster, policy.settled()
    jobs = read_jobs(state.tables, trace, chosen.scale_limit == "knee")
    rules = Rules(chosen.elastic, chosen.admission, chosen.spare_order == "artifact", chosen.overhead != "none")
    clock = Clock(jobs, rules, cluster.gpus, max(node.gpus for node in cluster.nodes), state.regime.round)
    clock.run()
    simulation.engine.decisions = clock.rounds
    return write_result(simulation, clock, chosen.judge == "exact")


def read_jobs(tables: Tables, trace: Trace, knee: bool) -> Jobs:
    """Iterations, speeds and limits: exactly those of an imported trace, else from the options."""
    F, rows = tables.F, tables.F.shape[1]
    speed = np.zeros((rows, _LEVELS))
    exact = {"throughputs", "work"} <= set(trace.frame.columns)
    if exact:
        work = trace.frame["work"].to_numpy().astype(np.float64)
        for row, cell in enumerate(trace.frame["throughputs"].cast(pl.String).to_list()):
            for part in cell.split("|"):
                size, _, value = part.partition("=")
                speed[row, int(size).bit_length() - 1] = float(value)
    else:
        work = F[c.WORK].copy()
        owner = np.repeat(np.arange(rows), tables.I[c.OPTION_COUNT])
        for row, size, rate in zip(owner.tolist(), tables.options.I[c.O_GPUS].tolist(), tables.options.F[c.O_RATE].tolist()):
            if size > 0 and size & (size - 1) == 0:
                speed[row, size.bit_length() - 1] = rate
    able = speed > 0.0
    if not able.any(axis=1).all():
        row = int(np.argmin(able.any(axis=1)))
        raise UsageError(f"job '{tables.ids[row]}' has no size that is a power of two", where=_WHERE, fix="it knows 1, 2, 4, ... GPUs only")
    top = _LEVELS - 1 - np.argmax(able[:, ::-1], axis=1)
    if knee:
        top = np.argmax(speed, axis=1)
        if "scale_limit" in trace.frame.columns:
            limit = trace.frame["scale_limit"].cast(pl.Int64).to_numpy()
            fits = able & (2 ** np.arange(_LEVELS) <= limit[:, None])
            top = np.where(fits.any(axis=1), _LEVELS - 1 - np.argmax(fits[:, ::-1], axis=1), top)
    deadline = np.where(np.isnan(F[c.DEADLINE]), np.inf, F[c.DEADLINE])
    return Jobs(F[c.ARRIVAL].copy(), deadline, work, speed, top.astype(np.int64))


def _refuse_what_it_has_not(simulation: Simulation) -> None:
    state = simulation.state
    if not state.regime.round > 0:
        raise RefusedError("needs the length of a slot", where=_WHERE, fix="--round 240, as the artifact has it")
    if len({node.type for node in state.tables.cluster.nodes}) > 1:
        raise RefusedError("knows one device type only", where=_WHERE, fix="a cluster such as a100:16x8")
    refuse(simulation, "ElasticFlow's simulator", _WHERE, but=("--track",), also=("--until",))
