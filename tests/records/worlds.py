"""The small worlds of the records: for the engine and for every regime, a workload of our own making that leads into its corners.

Whole numbers are drawn and nothing goes through logarithms, so that a world is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.grids import hourly
from tests.systems.lucid import lucid_world

from gantline.core.facts import Signal
from gantline.core.inputs import NodeEvent
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.cassini.generator import periodic
from gantline.traces.files.node_lists import cluster_text, read_node_list
from gantline.traces.files.profiles import example_profiles
from gantline.traces.files.speeds import read_pair_profiles

Job = dict[str, Any]
SPEEDS = {"big": (4.0, 1.0), "small": (3.0, 2.0), "flat": (1.0, 1.0)}  # steps per second on one v100, on one k80
SENSITIVITY = Path(__file__).parents[2] / "examples" / "sensitivity"
TWO_TYPES = "v100:2x4,k80:2x4"
HYBRID = "gpu:4x1/0c/64g,cpu:4x0/20c/64g"
BATCHES = """worker_type,job_type,scale_factor,steps_per_s
v100,LM (batch size 10),1,20
v100,LM (batch size 20),1,15
v100,LM (batch size 40),1,10
v100,LM (batch size 80),1,6
v100,ResNet-18 (batch size 128),2,30
v100,ResNet-18 (batch size 256),2,18
"""
STAGES = ((0.5, 0.125, 0.0625), (0.0625, 0.5, 0.125), (0.125, 0.25, 0.375), (0.25, 0.25, 0.25))
LOSSES = (  # a device is cordoned, then its node is lost, and comes back without it
    NodeEvent(150.0, "node0:1", "drain"),
    NodeEvent(400.0, "node0", "down"),
    NodeEvent(900.0, "node0", "up"),
    NodeEvent(1200.0, "node0:1", "up"),
)
WINDOWS = "on=node1,from=400,for=300;on=node1,from=700,for=200;nodes=1,from=1200,for=100"  # the first two touch
CARBON = Signal((300.0, 120.0, 80.0, 260.0), step=600.0)


def some_jobs(seed: int, count: int, gap: int = 60, longest: int = 1200, gpus: tuple[int, ...] = (1, 1, 2, 4, 3, 8)) -> list[Job]:
    """Rigid jobs of a few users, most of them small, that come faster than they can be served."""
    draw = np.random.default_rng(seed)
    arrival, jobs = 0, []
    for number in range(count):
        arrival += int(draw.integers(0, gap))
        duration = int(draw.integers(20, longest)) if draw.integers(3) else int(draw.integers(20, 90))
        size = int(draw.choice(gpus))
        row = {"job": f"j{number}", "arrival": float(arrival), "gpus": size, "duration": float(duration), "user": f"user{draw.integers(3)}"}
        row |= {"queue": ("research", "production")[int(draw.integers(2))], "priority": float(draw.integers(3))}
        row |= {"deadline": arrival + duration * float(draw.integers(2, 9)), "model": ("resnet50", "vgg16")[int(draw.integers(2))]}
        jobs.append(row)
    return jobs


def tied_jobs(seed: int, count: int) -> list[Job]:
    """Jobs that come four at a time, as long, as wide and due at the same time as another."""
    draw, jobs = np.random.default_rng(seed), some_jobs(seed, count, gpus=(1, 2))
    for number, job in enumerate(jobs):
        arrival, duration = 120.0 * (number // 4), 200.0 * int(draw.integers(1, 4))
        job |= {"arrival": arrival, "duration": duration, "deadline": arrival + 1200.0, "priority": float(draw.integers(2))}
    return jobs


def elastic_jobs(seed: int, count: int) -> list[Job]:
    """Jobs that may have one, two, four or eight GPUs and gain less with each."""
    jobs = some_jobs(seed, count, gpus=(1, 2, 4))
    for job in jobs:
        alone = job["duration"] * job["gpus"]
        ways = {n: round(alone / n ** (0.9 if job["model"] == "vgg16" else 0.6), 1) for n in (1, 2, 4, 8)}
        job |= {"min_gpus": 1, "max_gpus": 8, "duration": ways[job["gpus"]], "options": "|".join(f"gpu:{n}={s}" for n, s in ways.items())}
    return jobs


def typed_jobs(seed: int, count: int) -> list[Job]:
    """Jobs whose speeds on two types a table tells, alone and beside another."""
    draw, jobs = np.random.default_rng(seed), some_jobs(seed, count, gpus=(1, 1, 2))
    for job in jobs:
        kind = tuple(SPEEDS)[int(draw.integers(3))]
        speed = SPEEDS[kind][0] * job["gpus"]
        job |= {"work": job["duration"] * speed * 3, "duration": job["duration"] * 3, "throughput_key": f"('{kind}', {job['gpus']})"}
        job |= {"user": job["queue"], "deadline": job["deadline"] + 9 * job["duration"]}
    return jobs


def speeds_of_pairs() -> ThroughputTable:
    """Two jobs on one GPU keep four fifths of their speed."""
    body: dict[str, Any] = {}
    for column, device in enumerate(("v100", "k80")):
        rows = body[device] = {}
        for size in (1, 2):
            own = {name: speeds[column] * size for name, speeds in SPEEDS.items()}
            for name, speed in own.items():
                beside = {f"('{other}', {size})": [0.8 * speed, 0.8 * theirs] for other, theirs in own.items()}
                rows[f"('{name}', {size})"] = {"null": speed, **beside}
    return ThroughputTable.of(body, "speeds.json")


def configured_jobs(seed: int, count: int) -> list[Job]:
    """Jobs whose configurations are in the made-up table of pairs."""
    draw, known = np.random.default_rng(seed), read_pair_profiles().pairs.names
    jobs = some_jobs(seed, count, gap=40, longest=2400, gpus=(1, 1, 2, 4))
    return [job | {"model": known[int(draw.integers(len(known)))]} for job in jobs]


def hybrid_jobs(seed: int, count: int) -> list[Job]:
    """Jobs for a GPU or a CPU node, most of them faster on the GPU."""
    draw, jobs = np.random.default_rng(seed), some_jobs(seed, count, gap=30, longest=300, gpus=(1,))
    for job in jobs:
        job["options"] = f"gpu:1/2/4={job['duration']:g}|cpu:0/20/8={job['duration'] * int(draw.integers(3, 30)) / 4:g}"
    return jobs


def measured_jobs(seed: int, count: int) -> list[Job]:
    """Jobs that run by the made-up profiles of `traces/files/example_profiles`."""
    draw, jobs = np.random.default_rng(seed), some_jobs(seed, count, gap=200, gpus=(1, 2, 4))
    for job in jobs:
        app = ("vision", "speech")[int(draw.integers(2))]
        job |= {"app": app, "batch_size": {"vision": 128, "speech": 32}[app] * job["gpus"], "max_gpus": 16}
    return jobs


def changing_jobs(count: int) -> list[Job]:
    """Jobs whose batch size changes in mid-run, or not."""
    jobs = []
    for k in range(count):
        kind, batch, gpus = ("ResNet-18", 128, 2) if k % 4 == 3 else ("LM", (10, 20)[k % 2], 1)
        row = {"job": f"j{k}", "arrival": 150.0 * k, "gpus": gpus, "duration": 600.0, "work": 30000 + 7000 * (k % 5), "model": kind}
        row |= {
            "batch_size": batch,
            "mode": ("static", "gns", "accordion")[k % 3],
            "throughput_key": f"('{kind} (batch size {batch})', {gpus})",
        }
        jobs.append(row)
    return jobs


def staged_jobs(seed: int, count: int) -> list[Job]:
    """Jobs whose iterations are cycles of stages with different bottlenecks; every third is opportunistic."""
    draw, jobs = np.random.default_rng(seed), some_jobs(seed, count, gap=40, gpus=(1, 1, 2, 4, 8))
    for number, job in enumerate(jobs):
        load, gpu, network = STAGES[int(draw.integers(len(STAGES)))]
        step = (load + gpu + network) * int(draw.integers(14, 17)) / 16
        job |= {"stage_load": load, "stage_gpu": gpu, "stage_network": network, "iteration_time": step}
        job |= {"iterations": float(int(job["duration"] / step)), "opportunistic": float(number % 3 == 2)}
    return jobs


def guest_jobs(seed: int, count: int) -> list[Job]:
    """Jobs that leave a part of their GPUs idle, some of them less at times; every third is opportunistic."""
    draw, jobs = np.random.default_rng(seed), some_jobs(seed, count, gap=40, gpus=(1, 1, 2, 4, 8))
    for number, job in enumerate(jobs):
        job |= {"opportunistic": float(number % 3 == 2), "gpu_use": int(draw.integers(4, 14)) / 16}
        job |= {"gpu_use_peak": 0.875, "gpu_phase": 300.0} if number % 4 == 0 else {"gpu_use_peak": None, "gpu_phase": None}
    return jobs


def sending_jobs(seed: int, count: int) -> list[Job]:
    """Jobs that compute and communicate in turn."""
    return periodic(seed, {"jobs": count, "periods": "related", "most": 6}).frame.to_dicts()


def part_jobs(seed: int, count: int) -> list[Job]:
    """Most jobs ask for a part of one GPU and for CPUs, some for whole GPUs."""
    draw, jobs = np.random.default_rng(seed), some_jobs(seed, count, gap=20, gpus=(1, 1, 1, 1, 2, 4))
    for job in jobs:
        part = int(draw.integers(1, 11)) / 10 if job["gpus"] == 1 else float(job["gpus"])
        job |= {"gpu_demand": part, "cpus": int(draw.integers(1, 7))}
    return jobs


def make_worlds(folder: Path, most: int | None = None) -> dict[str, Callable[..., Run]]:
    """World -> a run with (policy, settings, options) of all jobs, or so many; the files that runs read are written to the folder."""
    batches, seats, rounds = folder / "batches.csv", folder / "seats.csv", folder / "rounds.csv"
    variety, linked = folder / "variety.csv", folder / "linked.yaml"
    batches.write_text(BATCHES, encoding="utf-8")
    seats.write_text(
        "t_s,name,gpu_type,nodes,gpus\n0,j0,small,1,2\n600,j0,large,1,4\n900,j1,small,1,1\n1500,j2,large,1,4\n", encoding="utf-8"
    )
    rounds.write_text("round,jobs\n" + "".join(f"{k},{k % 12} {(k + 5) % 12}\n" for k in range(400)), encoding="utf-8")
    variety.write_text(
        "gpu,node,A,B\n" + "".join(f"{k},{k // 4},{1 + k * 5 % 7 / 8},{1 + k % 3 / 16}\n" for k in range(16)), encoding="utf-8"
    )
    month = hourly(folder, (100 + hour * 37 % 240 for hour in range(900)))
    linked.write_text(cluster_text(read_node_list("mapa", Path("dgx-v"))), encoding="utf-8")

    def world(jobs: list[Job], cluster: str | None, **fixed: Any) -> Callable[..., Run]:
        def run(policy: str, settings: dict[str, Any], **more: Any) -> Run:
            if policy == "recorded":
                settings = settings | {"table": str(rounds if fixed["regime"] == "shockwave" else seats)}
            return simulate(jobs[:most], cluster, policy, settings=settings, **(fixed | more))

        return run

    virtual = [job for job in lucid_world.some_jobs(10, 40) if job["gpus"] <= 8]
    classes = [job | {"speed_class": "AB"[k % 2]} for k, job in enumerate(some_jobs(9, 20, gpus=(1, 2, 4)))]
    green = [{"job": f"j{k}", "arrival": 1800.0 * k, "gpus": 0, "cpus": 1 + k % 3, "duration": 2400.0 * (k % 6 + 1)} for k in range(24)]
    hungry = [
        job | {"model": ("vision", "speech", "text")[k % 3]} for k, job in enumerate(some_jobs(10, 24, longest=4000, gpus=(1, 1, 2, 4)))
    ]
    ringed = [
        job | {"bw_sensitive": k % 3 % 2, "allreduce_gb": 5.0 * (k % 4)} for k, job in enumerate(some_jobs(13, 40, gpus=(1, 2, 2, 3, 4, 5)))
    ]
    pairs = speeds_of_pairs()
    return {
        "rounds": world(some_jobs(1, 26), "4x4", round=60.0, costs="start=5,resume=20", placement="consolidated", carbon=CARBON),
        "elastic": world(elastic_jobs(2, 16), "2x8", costs="start=5,resume=20,resize=10", carbon=CARBON),
        "ties": world(tied_jobs(14, 32), "2x4", costs="start=5,resume=20,checkpoint=60", node_events=LOSSES),
        "windows": world(some_jobs(15, 24), "2x4", costs="start=5,resume=20", reserve=WINDOWS, estimates="oracle"),
        "two types": world(typed_jobs(3, 16), TWO_TYPES, round=360.0, throughputs=pairs),
        "cpu or gpu": world(hybrid_jobs(4, 40), HYBRID.replace("/0c", "/2c")),
        "blox": world(some_jobs(5, 40, longest=4000), "4x4", regime="blox"),
        "tiresias": world(some_jobs(6, 40), "4x4", regime="tiresias"),
        "gavel": world(typed_jobs(3, 16), TWO_TYPES, regime="gavel", throughputs=pairs),
        "gavel, one device": world([job for job in typed_jobs(3, 30) if job["gpus"] == 1], TWO_TYPES, regime="gavel", throughputs=pairs),
        "irfsim": world(hybrid_jobs(4, 40), HYBRID, regime="irfsim"),
        "irfsim-known": world(hybrid_jobs(4, 40), HYBRID, regime="irfsim-known"),
        "elasticflow": world(elastic_jobs(7, 24), "gpu:2x8", regime="elasticflow", round=60.0),
        "elasticflow, rigid": world(some_jobs(7, 24, gpus=(1, 2, 4, 8)), "gpu:2x8", regime="elasticflow", round=60.0),
        "shockwave": world(changing_jobs(12), "v100:3", regime="shockwave", throughputs=batches),
        "sia": world(measured_jobs(8, 12), "small:2x4,large:1x8", regime="sia", profiles=example_profiles()),
        "sia, one type": world(measured_jobs(8, 12), "large:2x8", regime="sia", profiles=example_profiles()),
        "sia, two jobs": world(measured_jobs(8, 2), "small:2x4,large:1x8", regime="sia", profiles=example_profiles()),
        "pollux": world(measured_jobs(8, 12), "small:2x4", regime="pollux", profiles=example_profiles()),
        "pal": world(classes, "4x4", regime="pal", placement="pal", device_speeds=str(variety), locality=1.5),
        "lucid": world(
            virtual, str(lucid_world.write_clusters(folder)), regime="lucid", profiles=str(lucid_world.write_profiles(folder, virtual))
        ),
        "pairs": world(configured_jobs(12, 40), "4x8", performance="pairs"),
        "links": world(sending_jobs(12, 30), "12x1@2/rack,tree:6.25/6.25", performance="shared-links"),
        "parts": world(part_jobs(14, 36), "v100:2x4/16c/64g,t4:2x2/24c/64g"),
        "rings": world(ringed, str(linked), performance="effective-bandwidth"),
        "stages": world(staged_jobs(11, 40), "2x8", performance="stage-cycles"),
        "guests": world(guest_jobs(12, 40), "2x8", performance="guests"),
        "muri": world(staged_jobs(10, 60), "2x8", regime="muri"),
        "synergy": world(hungry, "2x8/24c/500g", regime="synergy", profiles=str(SENSITIVITY)),
        "sensitive": world(hungry, "2x8/24c/500g", round=300.0, performance="sensitivity", profiles=str(SENSITIVITY)),
        "gaia": world(green, None, regime="gaia", carbon=month),
    }
