"""Small stories that every policy runs through: rounds and events, failures, late decisions, gangs, equal jobs.

Each is a function of its name alone: the same jobs every time, on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from gantline.core.costs import Costs
from gantline.core.node_events import NodeEvent
from gantline.core.rng import stream
from gantline.core.signal import Signal
from gantline.traces.trace import Trace

Job = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A trace, a cluster and how they are simulated."""

    name: str
    jobs: tuple[Job, ...]
    cluster: str = "4x4"
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def trace(self) -> Trace:
        return Trace.from_records(self.jobs, self.name)

    @property
    def skips(self) -> bool:
        """Whether there are rounds to skip."""
        return bool(self.options.get("round"))


def some_jobs(name: str, count: int = 8, largest: int = 8, types: tuple[str, ...] = ()) -> tuple[Job, ...]:
    """Jobs drawn by name: sizes are powers of two, lengths from seconds to twenty minutes, a few users and queues."""
    draw = stream(0, 0, f"conformance/{name}")
    arrivals = sorted((draw.random(count) * 500.0).round(1).tolist())
    jobs = []
    for number, arrival in enumerate(arrivals):
        gpus = min(largest, int(2 ** draw.integers(0, 4)))
        duration = round(10.0 + 1200.0 * float(draw.random()) ** 3, 1)
        job = {"job": f"{name}-{number}", "arrival": arrival, "gpus": gpus, "duration": duration}
        job |= {"user": f"user{draw.integers(3)}", "queue": ("research", "production")[int(draw.integers(2))]}
        job |= {"model": ("resnet50", "vgg16", "lstm")[int(draw.integers(3))], "min_gpus": max(1, gpus // 2), "max_gpus": gpus * 2}
        job |= {"deadline": arrival + duration * (2.0 + 6.0 * float(draw.random()))}
        if types:
            job["type"] = types[int(draw.integers(len(types)))]
        jobs.append(job)
    return tuple(jobs)


def equal_jobs(count: int = 9) -> tuple[Job, ...]:
    """Jobs that differ in nothing but their names, all there at the beginning."""
    return tuple({"job": f"equal-{number}", "arrival": 0.0, "gpus": 2, "duration": 120.0} for number in range(count))


def ranged_jobs() -> tuple[Job, ...]:
    """Jobs that name a range and list no sizes, as `gantline submit --gpus 1:3` does, beside one of a single size."""
    ranges = ((0.0, 1, 1, 3, 400.0), (20.0, 2, 2, 2, 90.0), (50.0, 2, 1, 4, 300.0), (55.0, 3, 2, 3, 60.0), (300.0, 1, 1, 2, 30.0))
    names = ("arrival", "gpus", "min_gpus", "max_gpus", "duration")
    return tuple({"job": f"range-{number}", **dict(zip(names, job))} for number, job in enumerate(ranges))


def _failures() -> tuple[NodeEvent, ...]:
    return (
        NodeEvent(200.0, "node0", "down"),
        NodeEvent(300.0, "node2", "drain"),
        NodeEvent(420.0, "node0", "up"),
        NodeEvent(560.0, "node2", "up"),
        NodeEvent(640.0, "node1", "down"),
        NodeEvent(900.0, "node1", "up"),
    )


CARBON = Signal((300.0, 120.0, 80.0, 260.0), step=200.0)
"""The grid of all stories, for policies that look at it."""
CARBON_WRITTEN = {"step": CARBON.step, "values": list(CARBON.values)}
"""The same in the document of a snapshot."""


@cache
def scenarios() -> tuple[Scenario, ...]:
    """All stories."""
    slow, prompt = Costs(start=5, resume=15, checkpoint=90), Costs(resume=10, checkpoint=60)
    typed = some_jobs("types", types=("v100", "k80"))
    gang = ({"job": "whole", "arrival": 30.0, "gpus": 16, "duration": 100.0},)
    return (
        Scenario("rounds", some_jobs("rounds"), options={"round": 60.0}),
        Scenario("events", some_jobs("events")),
        Scenario("two types", typed, "v100:2x8,k80:2x8", {"round": 45.0, "placement": "consolidated"}),
        Scenario("failures", some_jobs("outages"), options={"round": 60.0, "node_events": _failures(), "costs": slow}),
        Scenario("failures on events", some_jobs("failing"), options={"node_events": _failures(), "costs": prompt}),
        Scenario("late decisions", some_jobs("late"), options={"round": 60.0, "latency": 7.0}),
        Scenario("wrong estimates", some_jobs("wrong"), options={"round": 60.0, "estimates": "noisy:1.0", "seed": 3}),
        Scenario("one job", some_jobs("one", 1), options={"round": 60.0}),
        Scenario("a gang as large as the cluster", tuple(sorted((*some_jobs("gang", 8), *gang), key=lambda job: float(job["arrival"])))),
        Scenario("equals", equal_jobs(), "2x4", {"round": 30.0}),
        Scenario("ranges", ranged_jobs(), "1x4", {"costs": Costs(start=2, resume=10, resize=5)}),
    )  # fmt: skip
