"""Training jobs for a machine with GPUs and CPU cores: convolution, transformer, recommendation, and one without PyTorch.

A job runs on the GPU if it is given one, else on the cores of its CPU slot. ``idle`` is for machines without PyTorch or GPUs: its steps are
pauses whose length depends on the type of its device.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["conv", "transformer", "recommendation", "idle"])
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--steps", type=int, default=10**9)
parser.add_argument("--pause", default="", help="of 'idle': seconds per step, or by type: cpu-fast=0.01,cpu-slow=0.03")
given = parser.parse_args()

DEVICE, _, SLOT = os.environ.get("GANTLINE_DEVICES", "cpu:0").split(",")[0].partition(":")
CORES, SLOTS = int(os.environ.get("CORES_PER_SLOT", "1")), int(os.environ.get("CPU_SLOTS", "0"))


def take_cores(on_gpu: bool) -> None:
    """A slot has cores of its own, and what runs on the GPU has the others: nobody is slowed by whom the scheduler knows nothing of.

    That holds for the start as well, so it comes before everything else that takes time.
    """
    cores = sorted(os.sched_getaffinity(0), key=lambda cpu: (_core(cpu), cpu))  # threads of one core are next to each other
    first = SLOTS * CORES if on_gpu else int(SLOT or 0) * CORES
    own = cores[first:] if on_gpu else cores[first : first + CORES]
    if own:
        os.sched_setaffinity(0, own)


def _core(cpu: int) -> tuple[int, int]:
    place = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    try:
        return int((place / "physical_package_id").read_text()), int((place / "core_id").read_text())
    except (OSError, ValueError):
        return 0, cpu


def idle() -> Callable[[], float]:
    """A step that only waits."""
    pauses = dict(part.split("=") for part in given.pause.split(",")) if "=" in given.pause else {DEVICE: given.pause}
    pause = float(pauses[DEVICE])

    def step() -> float:
        time.sleep(pause)
        return 0.0

    return step


def learner(on_gpu: bool) -> tuple[Callable[[], float], dict[str, Any]]:
    """A network with its optimiser, and a step of it; every tenth step waits for the device."""
    import torch
    from torch import nn

    torch.set_num_threads(2 if on_gpu else CORES)
    device = "cuda" if on_gpu else "cpu"
    torch.manual_seed(0)
    size = given.batch
    if given.kind == "conv":
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()]
        for width in (32, 64):
            layers += [nn.Conv2d(width, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
        model: nn.Module = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 64, 10))
        inputs, targets = torch.randn(size, 3, 32, 32), torch.randint(0, 10, (size,))
    elif given.kind == "transformer":
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
        model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2), nn.Linear(128, 1000), nn.Flatten(0, 1))
        inputs = torch.randint(0, 1000, (size, 64))
        targets = torch.randint(0, 1000, (size * 64,))
    else:
        model = nn.Sequential(nn.Embedding(20_000, 16), nn.Flatten(), nn.Linear(8 * 16, 128), nn.ReLU(), nn.Linear(128, 2))
        inputs, targets = torch.randint(0, 20_000, (size, 8)), torch.randint(0, 2, (size,))
    model = model.to(device)
    inputs, targets = inputs.to(device), targets.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    made = 0

    def step() -> float:
        nonlocal made
        made += 1
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach()) if made % 10 == 0 else float("nan")

    return step, {"model": model, "optimizer": optimizer}


def main() -> None:
    on_gpu = bool(os.environ.get("CUDA_VISIBLE_DEVICES"))
    if given.kind != "idle":
        take_cores(on_gpu)
    from gantline import train

    job = train.join()
    if given.kind == "idle":
        advance = idle()
        job.keep()
    else:
        from gantline.train import torch as train_torch

        advance, parts = learner(on_gpu)
        train_torch.keep(job, **parts)
    for _ in job.steps(given.steps):
        job.report(loss=advance())


if __name__ == "__main__":
    main()
