"""One machine, real training jobs, two clocks: profile them, schedule them live under several policies, predict the same by simulation.

    python examples/live_gpu/run.py                       all of it; without a CUDA GPU, waiting jobs on two kinds of CPU slots
    python examples/live_gpu/run.py profile --out DIR     short runs: DIR/profiles.json
    python examples/live_gpu/run.py live --out DIR        every policy on real processes: DIR/live.json
    python examples/live_gpu/run.py predict --out DIR     the simulator on the same jobs, and the table; DIR = examples/live_gpu/measured
                                                          is what was measured on an H200

A hybrid cluster of CPUs and GPUs as in AlloX (EuroSys 2020), and its question: what does it bring to let jobs run on either?
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import workload
from gantline.core.errors import UnreachableError
from gantline.core.inputs import Submit
from gantline.files.bundles import default_bundle, read_bundle, write_bundle
from gantline.performance.bundle import Bundle, Pairing, Profile, Speed
from gantline.runtime.launch import Launch
from gantline.runtime.local.devices import declared
from gantline.runtime.local.runner import LocalRunner
from gantline.runtime.profiling import measure_pairs
from gantline.runtime.records import MemoryStore
from gantline.runtime.scheduler import Scheduler
from gantline.runtime.setup import Setup
from gantline.runtime.trials import Place, Trials

POLICIES = ("fifo", "srtf", "las", "allox", "packed")
PACKED = f"{Path(__file__).with_name('packed.py')}:Packed"
ENDED = ("succeeded", "failed", "cancelled", "timeout", "rejected")


def has_gpu() -> bool:
    """Whether PyTorch sees a CUDA device."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def profile(out: Path, devices: str, kinds: list[str], given: argparse.Namespace) -> Bundle:
    """Short runs of every kind on every type, types beside each other, as they will be used."""
    machine = declared(devices)
    trials = Trials(limit=300.0, env={"CORES_PER_SLOT": str(given.cores)})
    kept = read_bundle(out / "profiles.json") if (out / "profiles.json").exists() else Bundle()
    found = {kind: dict(kept.jobs[kind].alone) if kind in kept.jobs else {} for kind in kinds}

    def column(type: str) -> None:
        place = Place.on(machine, type, 1)
        for kind in kinds:
            if is_known(found[kind].get((type, 1))):
                continue
            long = trials.pace(workload.command(kind), place) * given.span
            lengths = max(round(long / 10), 1), max(round(long), 3)
            found[kind][type, 1] = speed = trials.alone(workload.command(kind), place, lengths, given.repeats)
            line = f"{1e3 * speed.line.seconds:9.3f} ms/step  start {speed.line.startup:6.2f} s"
            print(f"{kind:24} {type:8} {line}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(column, node.type) for node in machine.cluster.nodes]:
            done.result()
    jobs = {}
    for kind, speeds in found.items():
        before = kept.jobs.get(kind, Profile(kind))
        pairs = {at: again(pairing, before.alone, speeds, at) for at, pairing in before.pairs.items()}
        jobs[kind] = Profile(kind, workload.command(kind), family=kind.split("-")[0], alone=speeds, pairs=pairs)
    bundle = Bundle(jobs, f"examples/live_gpu: a CPU slot is {given.cores} cores", devices)
    keep(bundle, out)
    if given.pairs:
        for richer in measure_pairs(bundle, machine, trials, given.window, lambda text: print(text, file=sys.stderr, flush=True)):
            bundle = richer
            keep(bundle, out)
    return bundle


def is_known(speed: Speed | None) -> bool:
    """Whether a speed was measured well enough not to be measured again."""
    return speed is not None and speed.line.high - speed.line.low < 0.6 * speed.line.seconds


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
    result: dict[str, Any] = {
        "devices": devices,
        "jobs": given.jobs,
        "mean": given.mean,
        "gap": given.gap,
        "round": given.round,
        "policies": {},
    }
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    result["added"] = runner_overhead(devices)
    for policy in given.policies:
        setup = setup_of(policy, bundle, str(out / "profiles.json"), given.round)
        run_nothing(devices, replace(setup, round=0.0), count=8, seconds=0.2)  # so that everything is compiled
        began = time.monotonic()
        rows = run_policy(setup, devices, jobs, given.cores)
        result["policies"][policy] = rows
        (out / "live.json").write_text(json.dumps(result, indent=1))
        mean = statistics.fmean(row["jct"] for row in rows)
        print(f"{policy:8} mean JCT {mean:7.2f} s, took {time.monotonic() - began:6.1f} s", file=sys.stderr, flush=True)
    return result


def setup_of(policy: str, bundle: Bundle, profiles: str, round: float) -> Setup:
    """How a policy is run, live and in the simulator; only LAS, which would stop somebody at every instant, needs rounds."""
    if policy == "packed":
        return Setup(policy=PACKED, settings={"pairs": pairs_text(bundle)}, profiles=profiles)
    return Setup(policy=policy, round=round if policy == "las" else 0.0, profiles=profiles)


def run_policy(setup: Setup, devices: str, jobs: list[workload.Work], cores: int) -> list[dict[str, Any]]:
    """One policy: submit as the jobs arrive, wait, and see."""
    home = Path(tempfile.mkdtemp(prefix="gantline-live-"))
    scheduler = Scheduler(MemoryStore(), LocalRunner(home, devices), setup=setup)
    scheduler.start()
    try:
        time.sleep(0.5)
        start, ids = time.monotonic(), []
        for job in jobs:
            time.sleep(max(0.0, start + job.arrival - time.monotonic()))
            ids += scheduler.submit(_in(job, cores))
        wait_for(scheduler, ids)
        view = scheduler.view().jobs
        rows = []
        for name, job in zip(ids, jobs):
            shown = view[name]
            if shown.state != "succeeded" or shown.finished is None or shown.started is None:
                raise RuntimeError(f"{job.kind} {shown.state}: {shown.why} {' / '.join(shown.lines)}")
            row = {"kind": job.kind, "arrival": shown.submitted, "jct": shown.finished - shown.submitted}
            rows.append({**row, "wait": shown.started - shown.submitted, "epochs": shown.epoch})
        return rows
    finally:
        scheduler.stop(drain=True, timeout=30.0)
        shutil.rmtree(home, ignore_errors=True)


def wait_for(scheduler: Scheduler, ids: list[str], limit: float = 1800.0) -> None:
    end, pause = time.monotonic() + limit, threading.Event()
    while any(scheduler.view().jobs[name].state not in ENDED for name in ids):
        if time.monotonic() > end:
            raise RuntimeError(f"jobs did not end within {limit:g} s")
        pause.wait(0.05)


def _in(job: workload.Work, cores: int) -> Any:
    """The job with the environment of its slot."""

    class Here:
        def expand(self) -> list[Any]:
            return [self]

        def to_submit(self, id: str, now: float) -> Any:
            return job.to_submit(id, now)

        def launch(self) -> Launch:
            return replace(job.launch(), env={"CORES_PER_SLOT": str(cores), "PYTHONPATH": os.environ["PYTHONPATH"]})

        def to_json(self) -> dict[str, Any]:
            return job.to_json()

    return Here()


class Nothing:
    """A job that does nothing for a while, on any of these types."""

    def __init__(self, types: list[str], seconds: float) -> None:
        self.types, self.seconds = types, seconds

    def expand(self) -> list[Any]:
        return [self]

    def to_submit(self, id: str, now: float) -> Submit:
        options = [{"type": kind, "gpus": 1, "rate": 1.0 / (1 + place)} for place, kind in enumerate(self.types)]
        return Submit(now, {"id": id, "gpus": 1, "estimate": self.seconds, "options": options})

    def launch(self) -> Launch:
        return Launch(("/bin/sleep", str(self.seconds)), resumes=True)

    def to_json(self) -> dict[str, Any]:
        return {"name": "nothing"}


def run_nothing(devices: str, setup: Setup, count: int, seconds: float) -> float:
    """Let jobs that do nothing queue up on the first type and the rest; seconds from one end to the next come back."""
    home = Path(tempfile.mkdtemp(prefix="gantline-live-"))
    scheduler = Scheduler(MemoryStore(), LocalRunner(home, devices), setup=setup)
    scheduler.start()
    try:
        types = [part.split(":")[0] for part in devices.split(",")]
        ids = []
        for place in range(count):
            for _ in range(20):  # the first decisions of a policy are compiled, which may take longer than a request waits
                try:
                    ids += scheduler.submit(Nothing(types, seconds), request=str(place))
                    break
                except UnreachableError:
                    continue
        wait_for(scheduler, ids)
        ends = sorted(shown.finished or 0.0 for name, shown in scheduler.view().jobs.items() if name in ids)
        return (ends[-1] - ends[1]) / max(count - 2, 1)
    finally:
        scheduler.stop(drain=True, timeout=30.0)
        shutil.rmtree(home, ignore_errors=True)


def runner_overhead(devices: str) -> float:
    """Seconds that the runner adds between one job's end and the next one's beginning."""
    first = devices.split(",")[0].split(":")[0] + ":1"
    return run_nothing(first, Setup(), 8, 0.7) - 0.7


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
    parser.add_argument("--cores", type=int, default=3 if gpu else 1, help="per CPU slot")
    parser.add_argument("--jobs", type=int, default=12 if gpu else 9)
    parser.add_argument("--mean", type=float, default=6.0 if gpu else 1.5, help="seconds of a middling job on its best type")
    parser.add_argument("--gap", type=float, default=3.0 if gpu else 0.8, help="mean seconds between arrivals")
    parser.add_argument("--round", type=float, default=15.0 if gpu else 4.0, help="of LAS, in seconds")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--span", type=float, default=3.0, help="seconds of training of the longer of the short runs")
    parser.add_argument("--pairs", action=argparse.BooleanOptionalAction, default=True, help="measure pairs on the GPU")
    parser.add_argument("--window", type=float, default=3.0, help="seconds that each pair is watched")
    parser.add_argument("--policies", type=lambda text: text.split(","), default=list(POLICIES))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kinds = list(workload.ON_CPU if given.devices.startswith("cpu") else workload.ON_GPU)
    if given.phase in ("all", "profile"):
        profile(given.out, given.devices, kinds, given)
    if given.phase in ("all", "live"):
        live(given.out, given.devices, read_bundle(given.out / "profiles.json"), given)
    if given.phase in ("all", "predict"):
        from predict import compare

        measured = given.out / "profiles.json"
        compare(read_bundle(measured) if measured.exists() else default_bundle(), json.loads((given.out / "live.json").read_text()))


def gpu_name() -> str:
    import torch

    from gantline.runtime.local.devices import short_name

    return short_name(torch.cuda.get_device_name(0))


if __name__ == "__main__":
    main()
