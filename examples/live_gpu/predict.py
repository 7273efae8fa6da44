"""What the simulator says of the same jobs, beside what was measured."""

from __future__ import annotations

import statistics
from typing import Any

import workload
from gantline import simulate
from gantline.core.cluster import Cluster, Node
from gantline.files.policies import load_policy
from gantline.performance.bundle import Bundle
from gantline.performance.profiled_model import ProfiledModel


def predict(bundle: Bundle, told: dict[str, Any], policy: str, arrivals: list[float]) -> list[float]:
    """Completion times that the simulator expects, in the order of the jobs."""
    from run import setup_of

    jobs = workload.make(bundle, told["jobs"], mean=told["mean"], gap=told["gap"])
    rows = [{**job.row(place), "arrival": at} for place, (job, at) in enumerate(zip(jobs, arrivals))]
    groups = [part.split(":") for part in told["devices"].split(",")]
    cluster = Cluster(tuple(Node(name, name, int(count)) for name, count in groups))
    setup = setup_of(policy, bundle, "", told["round"])
    model, chosen = ProfiledModel(bundle, added=told["added"]), load_policy(setup.policy, setup.settings)
    spared = {name: getattr(setup, name) for name in ("min_run", "grace", "turn")}
    run = simulate(rows, cluster, chosen, performance=model, round=setup.round or None, executor="measured", **spared)
    done = {str(row["job"]): row["jct"] for row in run.jobs.iter_rows(named=True)}
    return [done[str(place)] for place in range(len(rows))]


def compare(bundle: Bundle, told: dict[str, Any]) -> dict[str, float]:
    """Print a row per policy, over all of its runs; the errors of the mean come back."""
    print(f"{'policy':8} {'measured':>9} {'predicted':>9} {'error':>7} {'per job':>8}   mean JCT in seconds, {told['devices']}")
    errors = {}
    for policy, runs in told["policies"].items():
        real = [row["jct"] for rows in runs for row in rows]
        expected = [jct for rows in runs for jct in predict(bundle, told, policy, [row["arrival"] for row in rows])]
        means = statistics.fmean(real), statistics.fmean(expected)
        errors[policy] = means[1] / means[0] - 1
        each = statistics.fmean(abs(a - b) for a, b in zip(expected, real)) / means[0]
        single = ", ".join(f"{statistics.fmean(row['jct'] for row in rows):.2f}" for rows in runs) if len(runs) > 1 else ""
        print(f"{policy:8} {means[0]:9.2f} {means[1]:9.2f} {errors[policy]:+7.1%} {each:8.1%}   {single}".rstrip())
    off = [abs(error) for error in errors.values()]
    print(f"simulation error of the mean JCT: {statistics.fmean(off):.1%} on average, {max(off):.1%} at worst")
    return errors
