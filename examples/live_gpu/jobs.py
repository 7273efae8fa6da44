"""Training jobs for slices of a GPU, of any number of ranks: convolution, transformer, recommendation, and one without PyTorch.

Every rank trains on a batch of its own and gradients are averaged over gloo, so a step of a gang is as many steps of one device as it has
ranks. ``idle`` is for machines without PyTorch or GPUs: its steps are pauses, a little longer in a larger gang.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from typing import Any

from gantline import train

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["conv", "transformer", "recommendation", "idle"])
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--steps", type=int, default=10**9, help="of one device")
parser.add_argument("--pause", type=float, default=0.01, help="of 'idle': seconds per step")

Parts = dict[str, Any]


def idle(pause: float, world: int) -> Callable[[], float]:
    """A step that only waits: two ranks do 1.6 times the work of one, four 2.5 times."""
    seconds = pause * (1.0 + 0.3 * math.log2(world))

    def step() -> float:
        time.sleep(seconds)
        return 0.0

    return step


def network(kind: str, batch: int) -> tuple[Any, Any, Any]:
    """A network with a batch of inputs and targets."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    if kind == "conv":
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()]
        for width in (32, 64):
            layers += [nn.Conv2d(width, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
        model: nn.Module = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 64, 10))
        return model, torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    if kind == "transformer":
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
        model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2), nn.Linear(128, 1000), nn.Flatten(0, 1))
        return model, torch.randint(0, 1000, (batch, 64)), torch.randint(0, 1000, (batch * 64,))
    model = nn.Sequential(nn.Embedding(20_000, 16), nn.Flatten(), nn.Linear(8 * 16, 128), nn.ReLU(), nn.Linear(128, 2))
    return model, torch.randint(0, 20_000, (batch, 8)), torch.randint(0, 2, (batch,))


def learner(kind: str, batch: int, world: int) -> tuple[Callable[[], float], Parts]:
    """A step of a network and what is kept of it; every tenth step waits for the device."""
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() and os.environ.get("CUDA_VISIBLE_DEVICES") else "cpu"
    model, inputs, targets = network(kind, batch)
    model, inputs, targets = model.to(device), inputs.to(device), targets.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    trained = DistributedDataParallel(model) if world > 1 else model
    made = 0

    def step() -> float:
        nonlocal made
        made += 1
        loss = nn.functional.cross_entropy(trained(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach()) if made % 10 == 0 else float("nan")

    return step, {"model": model, "optimizer": optimizer}


def main() -> None:
    given = parser.parse_args()
    if given.kind == "idle":
        job = train.join(gang=train.SocketGang())
        advance = idle(given.pause, job.world)
        job.keep()
    else:
        from gantline.train import torch as train_torch

        job = train.join(gang=train_torch.ProcessGroup("gloo"))
        advance, parts = learner(given.kind, given.batch, job.world)
        train_torch.keep(job, **parts)
    for _ in job.loader(range(given.steps), batch=1, follow="replicas", shuffle=False):
        job.report(loss=advance())


if __name__ == "__main__":
    main()
