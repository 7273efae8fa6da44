"""A small world for Lucid's simulator: three virtual clusters, a few configurations, predictions and forecasts of our own making."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

BEGIN = 13_219_200
CLUSTERS = {"vc8Gr": 3, "vcefl": 2, "vcYVn": 2}
CONFIGURATIONS = {  # network -> (MB of device memory, score); the last one is always undisturbed
    "Wren/Birds/32/fp32": (3000, 0),
    "Lark/Songs/64/amp": (9000, 1),
    "Kite/Winds/64/fp32": (13000, 1),
    "BERT/Words/32/fp32": (8000, 2),
}
_SPEEDS = {(0, 0): (0.97, 0.93), (0, 1): (0.91, 0.88), (0, 2): (0.83, 0.9), (1, 1): (0.81, 0.79), (1, 2): (0.7, 0.63), (2, 2): (0.6, 0.6)}


def some_jobs(seed: int, count: int, gap: int = 50, longest: int = 900) -> list[dict[str, Any]]:
    """Jobs in bursts, with equal seconds of submission and numbers of GPUs that are no powers of two."""
    draw, names = np.random.default_rng(seed), list(CONFIGURATIONS)
    arrival, jobs = BEGIN, []
    for number in range(count):
        arrival += int(draw.integers(0, gap)) * int(draw.integers(0, 2))
        duration = int(draw.integers(5, longest)) if draw.integers(3) else int(draw.integers(5, 250))
        model = names[int(draw.integers(len(names)))]
        row = {"job": f"{1000 + number}", "arrival": float(arrival), "duration": float(duration), "model": model}
        row |= {"gpus": int(draw.choice((1, 1, 2, 3, 4, 4, 8, 12, 16))), "queue": list(CLUSTERS)[int(draw.integers(3))]}
        jobs.append(row)
    last = {"job": "last", "arrival": float(arrival + 4000), "duration": 30.0, "model": names[0], "gpus": 1, "queue": "vcYVn"}
    return [*jobs, last]  # by then the profiler has given back what it borrowed


def write_profiles(folder: Path, jobs: list[dict[str, Any]], *, known: bool = False) -> Path:
    """The five files of a folder of profiles; few jobs are expected for an hour, and many GPUs at first."""
    draw = np.random.default_rng(7)
    names = list(CONFIGURATIONS)
    split = {name: (*name.split("/")[:3], int(name.endswith("amp"))) for name in names}
    alone = [f"{','.join(map(str, split[name]))},50.0,{memory},{score}" for name, (memory, score) in CONFIGURATIONS.items()]
    _write(folder / "single_data.csv", "model,dataset,batchsize,amp,gpu_util,gmem,label", alone)
    head = "model1,dataset1,batchsize1,amp1,speed1,model2,dataset2,batchsize2,amp2,speed2"
    pairs = [
        f"{','.join(map(str, split[names[a]]))},{own},{','.join(map(str, split[names[b]]))},{other}"
        for (a, b), (own, other) in _SPEEDS.items()
    ]
    _write(folder / "colocate_info.csv", head, pairs)
    for model in ("ebm", "lgb"):
        guesses = [f"{job['job']},{int(job['duration'] * (1.0 if known else draw.uniform(0.4, 2.0))) - 60 * (not known)}" for job in jobs]
        _write(folder / f"venus_sept_{model}_duration_pred.csv", "job_id,priority", guesses)
    steps = [f"x,{1.0 if 3 <= step <= 9 else 9.0},{70 - 5 * step if step < 9 else 25}" for step in range(40)]
    _write(folder / "venus_sept_throughput_pred.csv", "time,pred_gpu_job,pred_gpu_num", steps)
    return folder


def write_clusters(folder: Path) -> Path:
    return _write(folder / "clusters.csv", ",num", [f"{name},{count}" for name, count in CLUSTERS.items()])


def _write(path: Path, head: str, rows: list[str]) -> Path:
    path.write_text("\n".join((head, *rows, "")), encoding="utf-8")
    return path
