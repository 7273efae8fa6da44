"""Profiles of jobs together: every kind in gangs of one, two and four, among others that fill the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import workload

from gantline.core.cluster import Node
from gantline.core.slices import gpu_of, whole_and_percent
from gantline.live.profiling.colocation_profiling import TrialGang, colocated
from gantline.live.runners.local.devices import declared
from gantline.live.runners.local.runner import LocalRunner
from gantline.models.profiles.bundle import Bundle, Profile
from gantline.models.profiles.colocation_fit import TrialLife, fit_colocation
from gantline.traces.files.speeds import read_bundle, write_bundle


def profile(
    out: Path, devices: str, kinds: list[str], sizes: list[int], seconds: float, how: dict[str, Any], is_over: Callable[[], bool]
) -> bool:
    """Fill each GPU with gangs of one size until every kind was measured on each type; what is in the folder is not measured again.

    Returns whether nothing is left to measure; it stops early when time is over.
    """
    path = out / "profiles.json"
    bundle = read_bundle(path) if path.exists() else Bundle(devices=devices, about="examples/live_gpu, together")
    seen: dict[tuple[str, str, int], list[TrialLife]] = {}
    for nodes in _gpus(devices):
        for size in sizes:
            for crew_members in _crews(bundle, nodes, kinds, size):
                if is_over():
                    return False
                for member, life in zip(crew_members, _measured(devices, nodes, crew_members, size, seconds, how)):
                    seen.setdefault((member.kind, member.node.type, size), []).append(life)
                for kind, type in dict.fromkeys((member.kind, member.node.type) for member in crew_members):
                    speed = fit_colocation(seen[kind, type, size])
                    known = bundle.jobs.get(kind, Profile(kind, family=kind.split("-")[0]))
                    bundle = bundle.with_profile(replace(known, alone={**known.alone, (type, size): speed}))
                    print(f"{kind:20} {size} x {type:12} {said(speed)}", file=sys.stderr, flush=True)
                write_bundle(replace(bundle, jobs={kind: bundle[kind] for kind in kinds if kind in bundle.jobs}), path)
    return True


class CrewMember(NamedTuple):
    """Where a gang of some kind is measured."""

    kind: str
    node: Node
    first: int  # of its devices


def _gpus(devices: str) -> list[dict[Node, int]]:
    """The nodes of each GPU, with the first device of each: slices of two sizes are two nodes, and each counts for the other."""
    found: dict[str, dict[Node, int]] = {}
    first = 0
    for node in declared(devices).cluster.nodes:
        found.setdefault(gpu_of(node), {})[node] = first
        first += node.gpus
    return list(found.values())


def _crews(bundle: Bundle, nodes: Mapping[Node, int], kinds: list[str], size: int) -> Iterator[list[CrewMember]]:
    """Gangs that are measured together, as many as fit on these nodes; the last ones have some that are measured again to fill them."""
    missing = {
        node: [kind for kind in kinds if kind not in bundle.jobs or (node.type, size) not in bundle[kind].alone]
        for node in nodes
        if node.gpus >= size
    }
    while any(missing.values()):
        crew_members = []
        for node, left in missing.items():
            room = node.gpus // size
            some, missing[node] = left[:room], left[room:]
            others = [kind for kind in kinds if kind not in some] or some
            crewed = [*some, *(others[place % len(others)] for place in range(room - len(some)))]
            crew_members += [CrewMember(kind, node, nodes[node] + place * size) for place, kind in enumerate(crewed)]
        yield crew_members


def _measured(
    devices: str, nodes: Iterable[Node], crew_members: Sequence[CrewMember], size: int, seconds: float, how: Mapping[str, Any]
) -> list[TrialLife]:
    def part(node: Node) -> int:
        return whole_and_percent(node.type)[1]

    gangs = []
    for kind, node, first in crew_members:
        launch = lambda steps, kind=kind: workload.launch(kind, steps * size, {})  # noqa: E731
        gangs.append(TrialGang(kind, tuple(range(first, first + size)), launch, part(node)))
    with colocated(lambda home: LocalRunner(home, devices, **how), gangs, sum(node.gpus * part(node) for node in nodes)) as one:
        return one.measure(seconds)


def said(speed: Any) -> str:
    """One line about a profile."""
    stops = f"start {speed.line.startup:5.2f}  leave {speed.leave:5.2f}  resume {speed.resume:5.2f} s"
    return f"{speed.line.rate:8.1f} steps/s alone, x{speed.crowded:.3f} together  {stops}"
