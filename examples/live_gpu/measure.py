"""Profiles in company: every kind in gangs of one, two and four, among others that fill the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import workload
from gantline.core.cluster import Node
from gantline.core.slices import slices_of_gpu
from gantline.files.bundles import read_bundle, write_bundle
from gantline.performance.bundle import Bundle, Profile
from gantline.performance.company_fit import TrialLife, fit_company
from gantline.runtime.company import TrialGang, crew
from gantline.runtime.local.devices import declared
from gantline.runtime.local.runner import LocalRunner


def profile(
    out: Path, devices: str, kinds: list[str], sizes: list[int], seconds: float, how: dict[str, Any], is_over: Callable[[], bool]
) -> bool:
    """Fill each node with gangs of one size until every kind was measured; what is in the folder is not measured again.

    Returns whether nothing is left to measure; it stops early when time is over.
    """
    path = out / "profiles.json"
    bundle = read_bundle(path) if path.exists() else Bundle(devices=devices, about="examples/live_gpu, in company")
    first, cluster = 0, declared(devices).cluster
    seen: dict[tuple[str, str, int], list[TrialLife]] = {}
    for node in cluster.nodes:
        for size in sizes:
            for crewed in _crews(bundle, node, kinds, size):
                if is_over():
                    return False
                lives = _measured(devices, node, crewed, size, first, seconds, how)
                for kind, life in zip(crewed, lives):
                    seen.setdefault((kind, node.type, size), []).append(life)
                for kind in dict.fromkeys(crewed):
                    speed = fit_company(seen[kind, node.type, size])
                    known = bundle.jobs.get(kind, Profile(kind, family=kind.split("-")[0]))
                    bundle = bundle.with_profile(replace(known, alone={**known.alone, (node.type, size): speed}))
                    print(f"{kind:20} {size} x {node.type:12} {said(speed)}", file=sys.stderr, flush=True)
                write_bundle(replace(bundle, jobs={kind: bundle[kind] for kind in kinds if kind in bundle.jobs}), path)
        first += node.gpus
    return True


def _crews(bundle: Bundle, node: Node, kinds: list[str], size: int) -> Iterator[list[str]]:
    """Kinds that are measured together, as many as fit on the node; the last ones have some that were measured for company."""
    room = node.gpus // size
    missing = [kind for kind in kinds if kind not in bundle.jobs or (node.type, size) not in bundle[kind].alone]
    for at in range(0, len(missing), max(room, 1)) if room else ():
        some = missing[at : at + room]
        others = [kind for kind in kinds if kind not in some] or some
        yield [*some, *(others[place % len(others)] for place in range(room - len(some)))]


def _measured(devices: str, node: Node, kinds: list[str], size: int, first: int, seconds: float, how: Mapping[str, Any]) -> list[TrialLife]:
    gangs = []
    for place, kind in enumerate(kinds):
        held = tuple(range(first + place * size, first + (place + 1) * size))
        gangs.append(TrialGang(kind, held, lambda steps, kind=kind: workload.launch(kind, steps * size, {})))  # type: ignore[misc]
    with crew(lambda home: LocalRunner(home, devices, **how), gangs, slices_of_gpu(node, declared(devices).cluster.nodes)) as one:
        return one.measure(seconds)


def said(speed: Any) -> str:
    """One line about a profile."""
    stops = f"start {speed.line.startup:5.2f}  leave {speed.leave:5.2f}  resume {speed.resume:5.2f} s"
    return f"{speed.line.rate:8.1f} steps/s alone, x{speed.crowded:.3f} in company  {stops}"
