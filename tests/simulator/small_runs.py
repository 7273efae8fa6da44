"""Small runs drawn from a number: clusters, jobs, policies that are orders, placements, rounds, costs, bounds.

The same number always gives the same run, so what one version of the kernels made of it can be written down and held against the next.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from gantline.core.columns import Device, Job, Node
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.engine.declared_key import LinearKey
from gantline.engine.log import Interval
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("fifo", {}),
    ("fifo", {"backfill": "skip"}),
    ("sjf", {}),
    ("srtf", {}),
    ("srsf", {}),
    ("smallest", {}),
    ("las", {}),
    ("las", {"service": "gpu-time"}),
    ("tiresias", {"limits": (300.0,), "compat": "none"}),
    ("tiresias", {"limits": (120.0, 900.0), "compat": "none", "service": "time"}),
]
PLACEMENTS = ["first-free", "consolidated", "consolidated:tight", "consolidated:preferred", "skew", "random", "first-node"]
FLOATS = (
    Job.DONE,
    Job.RATE,
    Job.SINCE,
    Job.ESTIMATE,
    Job.SERVICE,
    Job.GPUTIME,
    Job.SAFE,
    Job.FIRST_START,
    Job.LAST_START,
    Job.FINISH,
    Job.ADMITTED,
    Job.WAITED,
    Job.MARK,
)
INTS = (Job.HELD, Job.HEAD, Job.OPTION, Job.EPOCH, Job.PREEMPTIONS, Job.RESTARTS)


@dataclass(frozen=True)
class Mixed(OrderPolicy):
    """Any sum of columns at all, with a level in front or not."""

    name: ClassVar[str] = "mixed"
    declared: LinearKey = field(default_factory=LinearKey)

    def key(self, snapshot: Snapshot) -> Any:
        jobs, k = snapshot.jobs, self.declared
        service = jobs.attained_gpu if k.level_by == "attained_gpu" else jobs.attained
        first = np.where(np.isnan(jobs.first_start), 1e11 + jobs.arrival, jobs.first_start)
        left = np.maximum(jobs.remaining, 0.0)
        key = k.arrival * jobs.arrival + k.attained * jobs.attained + k.attained_gpu * jobs.attained_gpu + k.remaining * left
        key = key + k.remaining_gpu * (left * jobs.gpus) + k.estimate * jobs.estimate + k.gpus * jobs.gpus + k.priority * jobs.priority
        key = key + (k.first_start * first if k.first_start else 0.0)
        return np.searchsorted(np.array(k.thresholds), service, side="right") * 1e12 + key if k.thresholds else key

    def valid_until(self, snapshot: Snapshot) -> float | None:
        """The next level of a job that runs, or would if this plan starts it, where nothing else moves an order against those that run."""
        if not self.declared.thresholds:
            return None
        assert self.declared.level_by == "attained"
        left = [limit - service for service in snapshot.jobs.attained for limit in self.declared.thresholds if limit > service]
        return snapshot.now + min(left, default=np.inf)


MIXED = [
    LinearKey(arrival=1.0, priority=-100.0),
    LinearKey(attained=2.0, remaining=-1.0),
    LinearKey(arrival=0.5, attained=1.0, gpus=3.0),
    LinearKey(remaining=1.0, thresholds=(200.0,), level_by="attained"),
    LinearKey(attained=1.0, first_start=1e-6),
    LinearKey(remaining=-1.0),
]


def draw(number: int, hard: bool = True, noise: bool = True) -> tuple[Trace, str, Any, dict[str, Any]]:
    """Trace, cluster, policy and the other arguments of `simulate`.

    `hard`: now and then several types, CPUs, options, rare placements. `noise`: now and then estimates that are off; these are drawn
    through logarithms, whose last digit is not the same on every machine.
    """
    rng = np.random.default_rng(number)
    rare = hard and rng.random() < 0.3
    sizes = rng.integers(1, 6, rng.integers(1, 5)).tolist() if rng.random() < 0.4 else [int(rng.integers(1, 9))] * int(rng.integers(1, 6))
    cpus = "/8c/64g" if rare and rng.random() < 0.4 else ""
    kinds = ["a", "b"] if rare and rng.random() < 0.5 else ["a"]
    spec = ",".join(f"{kinds[k % len(kinds)]}:1x{size}{cpus}" for k, size in enumerate(sizes))
    largest = max(sizes) if len(set(sizes)) > 1 or len(kinds) > 1 else sum(sizes)
    whole = bool(rng.random() < 0.5)
    count = int(rng.integers(1, 40))
    gaps = rng.choice([0, 0, 1, 7, 60, 100], count) if whole else rng.integers(0, 600, count) / 7.0
    lengths = rng.integers(1, 900, count) if whole else rng.choice([70, 700, 7000], count) * rng.integers(1, 99, count) / 99.0 / 7.0
    needs = np.minimum(rng.choice([1, 1, 1, 2, 2, 4, 8, 3, 16], count), largest)
    frame: dict[str, Any] = {
        "job": [f"j{k}" for k in range(count)],
        "arrival": np.cumsum(gaps).astype(np.float64),
        "gpus": needs.astype(np.int64),
        "duration": lengths.astype(np.float64),
        "priority": rng.integers(0, 3, count).astype(np.float64),
        "model": rng.choice(["vgg19", "resnet50"], count).tolist(),
    }
    if cpus:
        frame["cpus"] = np.minimum(rng.choice([0.0, 1.0, 2.0], count) * needs, 8.0)
    elif rare and rng.random() < 0.3:
        frame["options"] = [f"a:{n}={d}|a:1={2 * d}" if n > 1 and rng.random() < 0.5 else "" for n, d in zip(needs, frame["duration"])]
    chosen = rng.integers(0, len(POLICIES) + 2)
    mixed = Mixed(declared=MIXED[int(rng.integers(0, len(MIXED)))])
    policy = make_policy(*POLICIES[chosen]) if chosen < len(POLICIES) else mixed
    placement = PLACEMENTS[int(rng.integers(0, len(PLACEMENTS)))] if rare else str(rng.choice(PLACEMENTS[:3]))
    more: dict[str, Any] = {
        "placement": placement,
        "round": float(rng.choice([0.0, 0.0, 60.0, 100.0])) or None,
        "costs": str(rng.choice(["", "", "start=30,resume=45,move=20", "5"])),
        "min_run": float(rng.choice([0.0, 0.0, 90.0])),
        "admission": str(rng.choice(["accept-all", "accept-all", "load-limit:1.2"])),
        "estimates": str(rng.choice(["oracle", "oracle", "noisy:0.5"])) if noise else "oracle",
        "seed": int(rng.integers(0, 100)),
        "until": float(rng.choice([np.inf, np.inf, np.inf, 500.0, 1234.5])),
        "track": (0, int(count // 2)) if rng.random() < 0.1 else None,
        "step_all": bool(rng.random() < 0.05),
    }
    if hard and rng.random() < 0.1:
        more |= {"regime": "blox", "round": 300.0}
    return Trace(pl.DataFrame(frame), "drawn"), spec, policy, more


def small_run(number: int, hard: bool = True, noise: bool = True) -> Run:
    """The run of that number."""
    trace, spec, policy, more = draw(number, hard, noise)
    return simulate(trace, spec, policy, **more)


def fingerprint(run: Run) -> str:
    """A short hash over who held what when, how often, and what the jobs had in the end.

    Codes of reasons and phases are left out, and so is the number of decisions: some loops look in vain where others know better.
    """
    t, log, digest = run.tables, run.log, hashlib.blake2b(digest_size=6)
    digest.update(repr([run.summary[name] for name in ("preemptions", "restarts")]).encode())
    n, devices = int(log.LN[0]), int(log.LN[1])
    parts = [log.LI[line, :n] for line in (Interval.ROW, Interval.OPTION, Interval.OFFSET, Interval.COUNT)] + [
        *log.LF[:, :n],
        log.LD[:devices],
    ]
    parts += [np.where(np.isnan(t.F[column]), -1.0, t.F[column]) for column in FLOATS] + [t.I[column] for column in INTS]
    for part in (*parts, t.NI[Node.FREE], t.D[Device.HOLDER]):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
