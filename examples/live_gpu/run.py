"""One machine, real training jobs, two clocks: profile them, schedule them live under several policies, predict the same by simulation.

    python examples/live_gpu/run.py                       all of it; without a CUDA GPU, waiting jobs on two kinds of CPU slots
    python examples/live_gpu/run.py profile --out DIR     short runs: DIR/profiles.json
    python examples/live_gpu/run.py live --out DIR        every policy on real processes: DIR/live.json
    python examples/live_gpu/run.py predict --out DIR     the simulator on the same jobs, and the table; DIR = examples/live_gpu/measured
                                                          is what was measured on an H200

What is in DIR already is not measured again, so that each phase can be continued. A hybrid cluster of CPUs and GPUs as in AlloX
(EuroSys 2020), and its question: what does it bring to let jobs run on either?
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import workload
from gantline.files.bundles import default_bundle, read_bundle, write_bundle
from gantline.performance.bundle import Bundle, Pairing, Profile, Speed
from gantline.performance.sampled_line import fit_line
from gantline.runtime.local.devices import declared
from gantline.runtime.profiling import measure_pairs
from gantline.runtime.setup import Setup
from gantline.runtime.trials import Place, Trials
from live import can_serve, overhead, run_policy

POLICIES = ("fifo", "srtf", "las", "allox", "packed")
PACKED = f"{Path(__file__).with_name('packed.py')}:Packed"


def has_gpu() -> bool:
    """Whether PyTorch sees a CUDA device."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def profile(out: Path, devices: str, kinds: list[str], given: argparse.Namespace) -> Bundle:
    """Every kind on every type, all devices beside each other and few starts at a time: as they will be used.

    Where there are several slots of a type they measure each kind twice, for one is not quite like another, and go on as long as anything
    is measured anywhere: on a quiet machine jobs are faster than they will be.
    """
    machine = declared(devices)
    trials = Trials(limit=300.0, env=environment(devices, given.cores), turn=threading.BoundedSemaphore(2))
    kept = read_bundle(out / "profiles.json") if (out / "profiles.json").exists() else Bundle()
    found = {kind: dict(kept.jobs[kind].alone) if kind in kept.jobs else {} for kind in kinds}
    lock = threading.Lock()

    def one(kind: str, free: SimpleQueue[Place], enough: float) -> None:
        place = free.get()
        try:
            known = found[kind].get((place.type, 1))
            if known is None or len(known.runs) < enough:
                speed = trials.watched(workload.command(kind), place, given.span, given.repeats)
                with lock:
                    found[kind][place.type, 1] = joined(found[kind].get((place.type, 1)), speed)
                    keep(bundle_of(found, kept, devices, given), out)
                tell(f"{kind:22} {place.type:8} {said(speed)}")
        finally:
            free.put(place)

    def go_on(free: SimpleQueue[Place]) -> None:
        for kind in itertools.cycle(kinds):
            if all(task.done() for task in needed):
                return
            one(kind, free, math.inf)

    with ExitStack() as pools:
        needed, more = [], []
        for node in machine.cluster.nodes:
            trials.run(workload.command(kinds[0]), Place.on(machine, node.type, 1), 1)  # the first start of all reads everything from disk
            free: SimpleQueue[Place] = SimpleQueue()
            for slot in range(node.gpus):
                free.put(Place.on(machine, node.type, 1, slot))
            times = min(node.gpus, 2)
            pool = pools.enter_context(ThreadPoolExecutor(node.gpus))
            needed += [pool.submit(one, kind, free, 2 * given.repeats * times) for _ in range(times) for kind in kinds]
            more.append((pool, free, node.gpus if node.gpus > 1 else 0))
        extra = [pool.submit(go_on, free) for pool, free, slots in more for _ in range(slots)]
        for task in needed + extra:
            task.result()
    bundle = bundle_of(found, kept, devices, given)
    if given.pairs:
        for richer in measure_pairs(bundle, machine, trials, given.window, tell):
            bundle = richer
            keep(bundle, out)
    return bundle


def joined(one: Speed | None, other: Speed) -> Speed:
    """The same seat, measured more than once."""
    if one is None:
        return other
    runs, part = one.runs + other.runs, len(other.runs) / len(one.runs + other.runs)
    leave, resume = ((1.0 - part) * (a or 0.0) + part * (b or 0.0) for a, b in ((one.leave, other.leave), (one.resume, other.resume)))
    return Speed(fit_line(runs), runs, leave=leave, resume=resume)


def bundle_of(found: dict[str, Any], kept: Bundle, devices: str, given: argparse.Namespace) -> Bundle:
    """What has been found so far, with the pairs that were there."""
    jobs = {}
    for kind, speeds in found.items():
        before = kept.jobs.get(kind, Profile(kind))
        pairs = {at: again(pairing, before.alone, speeds, at) for at, pairing in before.pairs.items()}
        jobs[kind] = Profile(kind, workload.command(kind), family=kind.split("-")[0], alone=dict(speeds), pairs=pairs)
    return Bundle(jobs, f"examples/live_gpu: a CPU slot is {given.cores} cores", devices)


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def said(speed: Speed) -> str:
    stops = f"start {speed.line.startup:5.2f} s  leave {speed.leave:5.2f} s  resume {speed.resume:5.2f} s"
    return f"{1e3 * speed.line.seconds:9.3f} ms/step (+-{width(speed):.1%})  {stops}"


def width(speed: Speed) -> float:
    """Half of the range of a speed, over the speed."""
    return (speed.line.high - speed.line.low) / 2 / speed.line.seconds


def again(pairing: Pairing, before: Any, now: Any, at: tuple[str, int, str]) -> Pairing:
    """A ratio that was taken over an older measurement, over the new one."""
    return replace(pairing, ratio=pairing.ratio * now[at[:2]].line.seconds / before[at[:2]].line.seconds)


def keep(bundle: Bundle, out: Path) -> None:
    """Write the bundle with commands as anybody would type them."""
    told = {sys.executable: "python", workload.JOBS: "examples/live_gpu/jobs.py"}
    jobs = {name: replace(job, command=tuple(told.get(word, word) for word in job.command)) for name, job in bundle.jobs.items()}
    write_bundle(replace(bundle, jobs=jobs), out / "profiles.json")


def live(out: Path, devices: str, bundle: Bundle, given: argparse.Namespace) -> dict[str, Any]:
    """The same jobs under each policy, on real processes."""
    jobs = workload.make(bundle, given.jobs, mean=given.mean, gap=given.gap)
    about = {name: getattr(given, name) for name in ("devices", "jobs", "mean", "gap", "round", "cores")}
    served = can_serve() if given.served is None else given.served
    known = json.loads((out / "live.json").read_text()) if (out / "live.json").exists() else {}
    result: dict[str, Any] = known if all(known.get(name) == value for name, value in about.items()) else {**about, "policies": {}}
    around = environment(devices, given.cores)
    if "added" not in result:
        result |= {"added": overhead(devices, around, served), "over_http": served}
    for repeat in range(given.repeat):  # the policies in turn, so that a machine that gets slower does so for all
        for policy in given.policies:
            runs = result["policies"].setdefault(policy, [])
            if len(runs) > repeat:
                continue
            setup = setup_of(policy, bundle, str((out / "profiles.json").absolute()), given.round)
            began = time.monotonic()
            runs.append(run_policy(setup, devices, jobs, around, served))
            (out / "live.json").write_text(in_lines(result), encoding="utf-8")
            mean = statistics.fmean(row["jct"] for row in runs[-1])
            tell(f"{policy:8} mean JCT {mean:7.2f} s, took {time.monotonic() - began:6.1f} s")
    return result


def in_lines(result: dict[str, Any]) -> str:
    """JSON with a line for each job."""
    text = json.dumps(result, indent=1)
    return re.sub(r"\{\s+([^{}]*?)\s+\}", lambda found: "{" + re.sub(r"\s+", " ", found[1]) + "}", text) + "\n"


def setup_of(policy: str, bundle: Bundle, profiles: str, round: float) -> Setup:
    """How a policy is run, live and in the simulator; only LAS, which would stop somebody at every instant, needs rounds."""
    if policy == "packed":
        return Setup(policy=PACKED, settings={"pairs": pairs_text(bundle)}, profiles=profiles)
    return Setup(policy=policy, round=round if policy == "las" else 0.0, profiles=profiles)


def environment(devices: str, cores: int) -> dict[str, str]:
    """What a job must know to keep to the cores of its slot."""
    slots = sum(int(part.split(":")[1]) for part in devices.split(",") if part.startswith("cpu"))
    return {"CORES_PER_SLOT": str(cores), "CPU_SLOTS": str(slots)}


def pairs_text(bundle: Bundle) -> str:
    """Measured pairs, as the packed policy takes them."""
    found = {}
    for job in bundle.jobs.values():
        for (kind, gpus, other), pairing in job.pairs.items():
            mirror = bundle[other].pairs.get((kind, gpus, job.name))
            if mirror is not None:
                found[tuple(sorted((job.name, other)))] = f"{job.name}+{other}={pairing.ratio:.4f}/{mirror.ratio:.4f}"
    return ",".join(found.values())


def main() -> None:
    gpu = has_gpu()
    parser = argparse.ArgumentParser(description="Profile, schedule and predict real jobs on this machine.")
    parser.add_argument("phase", nargs="?", default="all", choices=["all", "profile", "live", "predict"])
    parser.add_argument("--out", type=Path, default=Path("live_gpu"))
    parser.add_argument("--devices", default=f"{gpu_name() if gpu else 'cpu-fast'}:1,{'cpu:4' if gpu else 'cpu-slow:2'}")
    parser.add_argument("--cores", type=int, default=2 if gpu else 1, help="per CPU slot")
    parser.add_argument("--jobs", type=int, default=12 if gpu else 9)
    parser.add_argument("--mean", type=float, default=6.0 if gpu else 1.5, help="seconds of a middling job on its best type")
    parser.add_argument("--gap", type=float, default=3.0 if gpu else 0.8, help="mean seconds between arrivals")
    parser.add_argument("--round", type=float, default=15.0 if gpu else 4.0, help="of LAS, in seconds")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--span", type=float, default=6.0 if gpu else 2.0, help="seconds of training of a short run")
    parser.add_argument("--pairs", action=argparse.BooleanOptionalAction, default=True, help="measure pairs on the GPU")
    parser.add_argument("--window", type=float, default=3.0, help="seconds that each pair is watched")
    parser.add_argument("--policies", type=lambda text: text.split(","), default=list(POLICIES))
    parser.add_argument("--repeat", type=int, default=1, help="how often each policy is run")
    parser.add_argument("--served", action=argparse.BooleanOptionalAction, help="through the HTTP service; else as its libraries are there")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    kinds = list(workload.ON_CPU if given.devices.startswith("cpu") else workload.ON_GPU)
    if given.phase in ("all", "profile"):
        profile(given.out, given.devices, kinds, given)
    if given.phase in ("all", "live"):
        live(given.out, given.devices, read_bundle(given.out / "profiles.json"), given)
    if given.phase in ("all", "predict"):
        from predict import compare

        bundle = given.out / "profiles.json"
        compare(read_bundle(bundle) if bundle.exists() else default_bundle(), json.loads((given.out / "live.json").read_text()))


def gpu_name() -> str:
    import torch

    from gantline.runtime.local.devices import short_name

    return short_name(torch.cuda.get_device_name(0))


if __name__ == "__main__":
    main()
