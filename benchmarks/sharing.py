"""CPU milliseconds of a commit in which gangs share devices or links: `python -m benchmarks sharing [--jobs 1000,2000,4000]`.

Jobs of two GPUs on four GPUs each; the plan is ready, and what is timed is its commit: checks, devices, costs and speeds. Beside each other
stand plans in which all gangs change and plans in which one in twenty does. `--runs` adds whole simulations of policies that group by
four, pack pairs, and let guests run beside hosts, with plain gangs for comparison; what the policies themselves take is shown apart.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks._sharing_policies import run_all

from gantline import Assignments, Mode, Plan, Policy
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.core.facts import Facts
from gantline.core.phases import Phase
from gantline.engine.engine import Engine
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.policies.placement.rules import find_placement
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace


def engine_of(jobs: int) -> Engine:
    """All jobs have arrived and wait."""
    records = [{"job": f"j{k}", "arrival": 0.0, "gpus": 2, "duration": 1e6} for k in range(jobs)]
    tables = load_tables(Trace.from_records(records), parse_cluster(f"{jobs // 2 + 12}x8/64c/512g"), sizes_bind=False)
    state = State(tables, Regime(), find_placement("first-free"), Facts())
    tables.I[Job.PHASE] = int(Phase.PENDING)
    state.activate(np.arange(jobs))
    state.rebuild()
    return Engine(state, Policy())


@dataclass(frozen=True)
class Case:
    """A plan to begin with, and plans that are committed one after the other and timed."""

    name: str
    first: Callable[[int], Assignments] | None
    then: list[Callable[[int], Assignments]]


def few(jobs: int) -> np.ndarray:
    """One pair in twenty."""
    return (np.arange(jobs) // 2) % 20 == 0


def alone(jobs: int) -> Assignments:
    return Assignments(np.arange(jobs))


def groups(size: int, mode: Mode, shift: int = 0) -> Callable[[int], Assignments]:
    return lambda jobs: Assignments(np.arange(jobs), group=((np.arange(jobs) + shift) % jobs) // size, mode=np.full(jobs, int(mode)))


def parted(jobs: int) -> Assignments:
    apart = few(jobs)
    mode = np.where(apart, int(Mode.EXCLUSIVE), int(Mode.SPACE))
    return Assignments(np.arange(jobs), group=np.where(apart, -1, np.arange(jobs) // 2), mode=mode)


def offsets(step: float) -> Callable[[int], Assignments]:
    def plan(jobs: int) -> Assignments:
        row = np.arange(jobs)
        return Assignments(row, group=row // 4, mode=np.full(jobs, int(Mode.INTERLEAVE)), offset=step * (row % 4))

    return plan


def named_pairs(parts: bool) -> Callable[[int], Assignments]:
    """Each pair on two named devices; where it parts, the second member gets two others."""

    def plan(jobs: int) -> Assignments:
        apart, spare, where = few(jobs) & parts, jobs, []
        for k in range(jobs):
            beside = apart[k] and k % 2 == 1
            first = spare if beside else 2 * (k // 2)
            spare += 2 * int(beside)
            where.append((first, first + 1))
        mode = np.where(apart, int(Mode.EXCLUSIVE), int(Mode.SPACE))
        return Assignments(np.arange(jobs), group=np.where(apart, -1, np.arange(jobs) // 2), mode=mode, devices=where)

    return plan


def cpus(share: str, amount: float) -> Callable[[int], Assignments]:
    def plan(jobs: int) -> Assignments:
        changed = few(jobs) if share == "few" else np.ones(jobs, dtype=bool)
        return Assignments(np.arange(jobs), cpus=np.where(changed, amount, 2.0))

    return plan


def shifts(amount: float) -> Callable[[int], Assignments]:
    """Gangs on devices of their own; a hundred of them cross the same links."""

    def plan(jobs: int) -> Assignments:
        row = np.arange(jobs)
        where = [(2 * k, 2 * k + 1) for k in range(jobs)]
        offset = np.where(row % 20 == 0, amount, 0.5)
        return Assignments(row, group=row // 100, mode=np.full(jobs, int(Mode.INTERLEAVE)), offset=offset, devices=where)

    return plan


def guests(turn: int) -> Callable[[int], Assignments]:
    """Two in three are hosts; the others lie on one device of each of two hosts, which are others in the next plan."""

    def plan(jobs: int) -> Assignments:
        hosts = 2 * jobs // 3
        where = [(2 * k, 2 * k + 1) for k in range(hosts)]
        for k in range(jobs - hosts):
            one = (2 * k + turn) % hosts
            where.append((2 * one, 2 * ((one + 1) % hosts) + 1))
        return Assignments(np.arange(jobs), mode=np.full(jobs, int(Mode.SPACE)), fraction=np.full(jobs, 0.5), devices=where)

    return plan


CASES = [
    Case("plain gangs start", None, [alone]),
    Case("pairs start", None, [groups(2, Mode.SPACE)]),
    Case("one in twenty parts or meets", groups(2, Mode.SPACE), [parted, groups(2, Mode.SPACE)]),
    Case("all pairs change", groups(2, Mode.SPACE), [groups(2, Mode.SPACE, 1), groups(2, Mode.SPACE)]),
    Case("fours regrouped", groups(4, Mode.INTERLEAVE), [groups(4, Mode.INTERLEAVE, 2), groups(4, Mode.INTERLEAVE)]),
    Case("offsets of fours", offsets(1.0), [offsets(2.0), offsets(1.0)]),
    Case("pairs on named devices start", None, [named_pairs(False)]),
    Case("one in twenty of these changes", named_pairs(False), [named_pairs(True), named_pairs(False)]),
    Case("CPUs of one in twenty", cpus("few", 2.0), [cpus("few", 4.0), cpus("few", 2.0)]),
    Case("CPUs of all", cpus("all", 2.0), [cpus("all", 4.0), cpus("all", 2.0)]),
    Case("shifts of one in twenty, links of 100", shifts(0.5), [shifts(1.5), shifts(0.5)]),
    Case("guests over two hosts start", None, [guests(0)]),
    Case("all guests move", guests(0), [guests(1), guests(0)]),
    Case("no change", groups(2, Mode.SPACE), [groups(2, Mode.SPACE), groups(2, Mode.SPACE)]),
]


def commit(engine: Engine, table: Assignments, at: float) -> float:
    """CPU milliseconds."""
    engine.state.now = at
    engine.state.decision += 1
    plan = Plan.assign(table)
    began = time.process_time()
    engine.commit(plan)
    return 1000 * (time.process_time() - began)


def measured(case: Case, jobs: int, repeats: int) -> float:
    """The least of several commits."""
    best, engine = float("inf"), engine_of(jobs)
    gc.collect()
    if case.first is None:
        for again in range(repeats):
            engine = engine if again == 0 else engine_of(jobs)
            best = min(best, commit(engine, case.then[0](jobs), 0.0))
        return best
    commit(engine, case.first(jobs), 0.0)
    for again in range(repeats):
        for step, plan in enumerate(case.then):
            best = min(best, commit(engine, plan(jobs), 10.0 + 20.0 * again + 10.0 * step))
    return best


def main(arguments: argparse.Namespace) -> None:
    sizes = [int(each) for each in arguments.jobs.split(",")]
    for case in CASES:  # compile
        measured(case, 100, 1)
    print(f"{'CPU ms of a commit':40s}" + "".join(f"{size:>10,d}" for size in sizes) + "   us per gang")
    for case in CASES:
        found = [measured(case, size, arguments.repeats) for size in sizes]
        print(f"{case.name:40s}" + "".join(f"{ms:10.2f}" for ms in found) + f"   {1000 * found[-1] / sizes[-1]:11.1f}", flush=True)
    if arguments.runs:
        run_all([int(each) for each in arguments.run_jobs.split(",")])


def read(given: list[str] | None = None) -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", default="1000,2000,4000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--runs", action="store_true", help="whole simulations too")
    parser.add_argument("--run-jobs", default="1000", help="numbers of jobs of these, with commas")
    return parser.parse_args(given)


if __name__ == "__main__":
    main(read())
