"""One machine, real training jobs, two clocks: profile them, schedule them live under several policies, predict the same by simulation.

    python examples/live_gpu/run.py --out DIR             all of it; without a CUDA GPU, jobs that wait on eight slices of the CPU
    python examples/live_gpu/run.py profile --out DIR     short runs together: DIR/profiles.json
    python examples/live_gpu/run.py live --out DIR        every policy on real processes: DIR/live.json
    python examples/live_gpu/run.py predict --out DIR     the simulator on the same jobs, 200 draws, two errors, and the table

What is in DIR already is not measured again, so that each phase can be continued; `--budget-seconds` ends a phase in time. What is run is
laid down in `terms.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import workload

from gantline.live.runners.local.devices import declared
from gantline.live.scheduler.setup import Setup
from gantline.traces.files.speeds import read_bundle

TERMS = Path(__file__).with_name("terms.json")


def has_gpu() -> bool:
    """Whether PyTorch sees a CUDA device."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def live(out: Path, given: argparse.Namespace, terms: dict[str, Any], is_over: Callable[[float], bool]) -> None:
    """The same jobs under each policy, on real processes; a policy that would not end in time is not begun."""
    from live import run_policy

    bundle = read_bundle(out / "profiles.json")
    jobs = workload.make(bundle, terms, sum(node.gpus for node in declared(given.devices).cluster.nodes))
    path = out / "live.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"devices": given.devices, "terms": terms, "policies": {}}
    if (found["devices"], found["terms"]) != (given.devices, terms):
        raise SystemExit(f"{path} was made on {found['devices']} or under other terms: choose another --out")
    usual = 1.2 * jobs[-1].arrival + 20.0
    for repeat in range(given.repeat):
        for name in given.policies:
            runs = found["policies"].setdefault(name, [])
            if len(runs) > repeat or is_over(usual):
                continue
            began = time.monotonic()
            runs.append(
                run_policy(setup_of(terms, name, str((out / "profiles.json").absolute())), given.devices, jobs, given.how, 2.0 * usual)
            )
            took = time.monotonic() - began
            path.write_text(in_lines(found), encoding="utf-8")
            mean = sum(row["jct"] for row in runs[-1]["jobs"]) / len(jobs)
            print(f"{name:10} mean JCT {mean:7.2f} s, took {took:6.1f} s", file=sys.stderr, flush=True)


def setup_of(terms: dict[str, Any], name: str, profiles: str) -> Setup:
    """How a policy is run, live and in the simulator."""
    return Setup(**terms["policies"][name], profiles=profiles)


def in_lines(result: dict[str, Any]) -> str:
    """JSON with a line for each job and each order."""
    text = json.dumps(result, indent=1)
    return re.sub(r"\{\s+([^{}]*?)\s+\}", lambda found: "{" + re.sub(r"\s+", " ", found[1]) + "}", text) + "\n"


def main() -> None:
    gpu = has_gpu()
    parser = argparse.ArgumentParser(description="Profile, schedule and predict real jobs on this machine.")
    parser.add_argument("phase", nargs="?", default="all", choices=["all", "profile", "live", "predict"])
    parser.add_argument("--out", type=Path, default=Path("live_gpu"))
    parser.add_argument("--devices", default="h200/8" if gpu else "cpu:1/8")
    parser.add_argument("--kinds", type=lambda text: text.split(","), help="only these, by name")
    parser.add_argument("--gpus", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 4], help="sizes to profile")
    parser.add_argument("--seconds", type=float, default=3.0, help="that a gang is watched among the same others")
    parser.add_argument("--policies", type=lambda text: text.split(","), help="only these, by name in the terms")
    parser.add_argument("--two-sizes", action="store_true", help="the terms' policies for slices of two sizes, as two types")
    parser.add_argument("--repeat", type=int, default=1, help="how often each policy is run")
    parser.add_argument("--budget-seconds", type=float, default=600.0, help="nothing is begun that would end later")
    parser.add_argument("--terms", type=Path, default=TERMS)
    parser.add_argument("--preload", default="torch,numpy" if gpu else "", help="modules of the template from which jobs are forked")
    parser.add_argument("--draws", type=int, help="of each prediction; else as the terms say")
    parser.add_argument("--history", choices=["others", "none"], default="others", help="whether predictions use the other policies' runs")
    given = parser.parse_args()
    terms = json.loads(given.terms.read_text())
    if given.two_sizes:
        terms["policies"] = terms["two_sizes"]
    given.policies = given.policies or list(terms["policies"])
    if unknown := [name for name in given.policies if name not in terms["policies"]]:
        parser.error(f"{given.terms} has no {', '.join(unknown)}: there are {', '.join(terms['policies'])}")
    given.how = {"preload": tuple(given.preload.split(","))} if given.preload else {}
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    end = time.monotonic() + given.budget_seconds
    kinds = given.kinds or list(workload.kinds_for(given.devices))
    done = True
    if given.phase in ("all", "profile"):
        from measure import profile

        done = profile(given.out, given.devices, kinds, given.gpus, given.seconds, given.how, lambda: time.monotonic() + 60.0 > end)
    if given.phase in ("all", "live") and done:
        live(given.out, given, terms, lambda usual: time.monotonic() + usual > end)
    if given.phase in ("all", "predict"):
        from predict import compare

        compare(given.out, given.draws or terms["draws"], given.policies, given.history)


if __name__ == "__main__":
    main()
