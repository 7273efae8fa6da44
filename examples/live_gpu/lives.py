"""The spread of single jobs, learned from the live runs of another series: what a profile of a few lives cannot show."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import workload
from gantline.files.bundles import read_bundle, write_bundle
from gantline.performance.life_spread import WholeLife, spread_of_lives
from gantline.runtime.local.devices import declared


def lives_of(run: dict[str, Any], works: list[workload.Work], types: list[str]) -> list[WholeLife]:
    """The jobs of a run that had one start and no stop; `types` are those of the devices."""
    orders: dict[int, list[dict[str, Any]]] = {}
    for order in run["orders"]:
        orders.setdefault(order["job"], []).append(order)
    found = []
    for place, (only, *more) in orders.items():
        if not more:
            work, job, held = works[place], run["jobs"][place], only["devices"]
            seconds = job["arrival"] + job["jct"] - only["time"]
            found.append(WholeLife(work.kind, len(held), work.seconds[types[held[0]], len(held)], seconds))
    return found


def learn(out: Path, into: Path) -> None:
    """Write what the runs in one folder show into the profiles of another."""
    known, found = read_bundle(out / "profiles.json"), json.loads((out / "live.json").read_text())
    types = [node.type for node in declared(found["devices"]).cluster.nodes for _ in range(node.gpus)]
    works = workload.make(known, found["terms"], len(types))
    runs = [run for runs in found["policies"].values() for run in runs]
    lives = spread_of_lives([lives_of(run, works, types) for run in runs])
    path = into / "profiles.json"
    write_bundle(replace(read_bundle(path), lives=lives), path)
    print(f"{len(lives)} lives of {len(runs)} runs: written to {path}", file=sys.stderr)
