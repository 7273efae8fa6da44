"""`simulate(trace, cluster, policy, ...)`: one call from a trace to a finished run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gantline.admission.rules import AdmissionRule, find_admission
from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, UsageError
from gantline.core.node_events import NodeEvent
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.drivers.checkpoints import NO_CHECKPOINTS, Checkpoints
from gantline.drivers.virtual import Simulation
from gantline.engine.engine import Engine
from gantline.engine.lost_turns import Incident
from gantline.engine.regime import Regime, find_regime
from gantline.engine.state import State
from gantline.files.clusters import read_cluster
from gantline.files.policies import read_settings
from gantline.files.prices import read_prices
from gantline.files.profiles import read_profiles
from gantline.files.throughputs import read_throughputs
from gantline.imitations.registry import find_imitation
from gantline.performance.costs import Costs
from gantline.performance.estimate_chain import Estimates, find_estimates
from gantline.performance.goodput.measured import Profiles
from gantline.performance.throughput_table import ThroughputTable
from gantline.placement.rules import PlacementRule, find_placement
from gantline.policies.registry import make_policy
from gantline.simulator.bill import bill, with_prices
from gantline.simulator.budget import guard_of
from gantline.simulator.load import load_tables
from gantline.simulator.run import Run
from gantline.simulator.summary import summarise
from gantline.simulator.throughputs import estimation_summary, use_throughputs
from gantline.workload.option_estimates import fill_option_estimates
from gantline.workload.trace import Trace


def simulate(
    trace: Trace | str | Path | Any,
    cluster: Cluster | str | Path,
    policy: Policy | str,
    *,
    settings: Mapping[str, Any] | None = None,
    placement: PlacementRule | str = "first-free",
    admission: AdmissionRule | str = "accept-all",
    regime: Regime | str = "default",
    round: float | None = None,
    estimates: Estimates | str = "oracle",
    costs: Costs | str = "",
    min_run: float = 0.0,
    seed: int = 0,
    track: tuple[int, int] | None = None,
    until: float = math.inf,
    node_events: Iterable[NodeEvent] = (),
    latency: float = 0.0,
    performance: Any = None,
    throughputs: ThroughputTable | str | Path | None = None,
    across_nodes: bool = False,
    profiles: Profiles | str | Path | None = None,
    prices: Mapping[str, float] | str | Path | None = None,
    budget: float | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = math.inf,
    resume: str | Path | None = None,
    step_all: bool = False,
    record: bool = False,
    on_progress: Callable[[float, int, int], None] | None = None,
    on_lost: Callable[[Incident], None] | None = None,
) -> Run:
    """Simulate a trace on a cluster under a policy. Everything may be given by name, exactly as on the command line."""
    began, cpu_began = time.perf_counter(), time.process_time()
    jobs = _trace(trace)
    place = read_cluster(cluster)
    chosen = make_policy(policy, read_settings(settings or {})) if isinstance(policy, str) else policy
    rule = find_placement(placement) if isinstance(placement, str) else placement
    gate = find_admission(admission) if isinstance(admission, str) else admission
    way = (find_regime(regime) if isinstance(regime, str) else regime).with_round(round)
    money = read_prices(prices)
    chosen = with_prices(chosen.for_regime(way.name), money)
    guess = find_estimates(estimates) if isinstance(estimates, str) else estimates
    price = Costs.parse(costs) if isinstance(costs, str) else costs
    modelled = performance is not None or throughputs is not None
    provided = frozenset({"rates", "deadlines"}) | (frozenset({"pairs", "scaling"}) if modelled else frozenset())
    guess.provide(chosen.name or type(chosen).__name__, frozenset(chosen.needs), provided)
    tables = load_tables(jobs, place, skew_limit=rule.skew_limit, checkpoint=price.checkpoint)
    tables.performance = performance
    if throughputs is not None:
        tables.performance = use_throughputs(tables, jobs, read_throughputs(throughputs), across=across_nodes)
    guess.fill(tables, seed)
    fill_option_estimates(tables, jobs, guess, seed)
    state = State(tables, way, rule, price, min_run, seed)
    recorded: list[Any] = []
    engine = Engine(state, chosen, recorder=_recorder(recorded) if record else None)
    engine.guard, engine.turns.tell = guard_of(chosen, budget), on_lost
    window = _window(track, len(tables.ids), way)
    keep = Checkpoints(None if checkpoint is None else Path(checkpoint), checkpoint_every, None if resume is None else Path(resume))
    if keep != NO_CHECKPOINTS and not way.checkpoints:
        raise RefusedError(f"regime '{way.name}' has no checkpoints", where="--checkpoint", fix="leave that out, or use --regime gavel")
    if profiles is not None and not way.profiles:
        raise RefusedError(f"regime '{way.name}' does not use profiles", where="--profiles", fix="leave that out, or use another --regime")
    changes = tuple(sorted(node_events, key=lambda e: e.time))
    simulation = Simulation(engine, gate, guess, until, window, changes, step_all, latency, on_progress, keep)
    simulation.profiles = None if profiles is None else read_profiles(profiles)
    counted: dict[str, Any] | None = None
    imitate = find_imitation(way.name)
    if imitate is not None:
        counted = imitate(simulation, jobs)
    else:
        simulation.run()
    summary = summarise(simulation, chosen, jobs, place, simulation.estimates, rule, gate, seed) | (counted or {})
    summary |= estimation_summary(chosen, tables.performance, seed)
    if money and not engine.grants.fluid.device_seconds:  # ideal shares are of no device in particular
        summary["prices"], summary["cost"] = money, bill(tables, state.log, money, counted or {})
    summary["wall_seconds"] = time.perf_counter() - began
    summary["cpu_seconds"] = time.process_time() - cpu_began
    lost, said = (tuple(map(str, each)) for each in (engine.incidents, engine.notices))
    return Run(summary, tables, state.log, lost, recorded, window, tuple(engine.refusals), said)


def _trace(trace: Any) -> Trace:
    if isinstance(trace, Trace):
        return trace
    if isinstance(trace, (str, Path)):
        return Trace.load(trace)
    if isinstance(trace, list):
        return Trace.from_records(trace)
    return Trace.from_frame(trace)


def _window(track: tuple[int, int] | None, rows: int, regime: Regime) -> tuple[int, int] | None:
    if track is None:
        return None
    low, high = track[0], track[1] + (1 if regime.track_end_included else 0)
    if not 0 <= low < high:
        raise UsageError(f"{track[0]}:{track[1]} tracks no job", where="--track", fix="write LO:HI with LO <= HI, counted from 0")
    if low >= rows:
        raise UsageError(f"the trace has {rows} jobs, none from {low} on", where="--track", fix=f"use LO below {rows}")
    return low, min(high, rows)


def _recorder(into: list[Any]) -> Callable[[Snapshot, Any], None]:
    from gantline.core.snapshot_json import encode_plan, encode_snapshot

    def keep(snapshot: Snapshot, plan: Any) -> None:
        into.append((encode_snapshot(snapshot), encode_plan(plan)))

    return keep
