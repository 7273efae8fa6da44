"""An elastic data-parallel job: DistributedDataParallel with gloo, on CPUs or GPUs, or with NCCL; with any number of ranks.

    torchrun --nproc-per-node 2 examples/train_ddp.py
    gantline submit ddp.yaml       # processes: gpus; elastic: {min: 1, max: 4, live: true}

Every step sees the same samples whatever the number of ranks, so that resizing changes nothing but the speed. The gang may change without
a stop: the process group is formed anew, newcomers get the weights by broadcast, and the model is wrapped again.
"""

from __future__ import annotations

import argparse
import gc
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from gantline import train
from gantline.train import torch as train_torch

parser = argparse.ArgumentParser(description="Train a small network on made-up data.")
parser.add_argument("--samples", type=int, default=240)
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--rate", type=float, default=0.05)
parser.add_argument("--cuda", action="store_true", help="train on GPUs, each rank on its own where there are enough")
parser.add_argument("--backend", default="gloo", choices=["gloo", "nccl"], help="nccl: with --cuda, and a GPU for each rank")
parser.add_argument("--pause", type=float, default=0.0, help="seconds that each step takes on top")
parser.add_argument("--leave-after", type=int, default=0, help="ask to stop after so many steps, as the scheduler would")
given = parser.parse_args()

for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}.items():
    os.environ.setdefault(name, value)
torch.set_num_threads(1)
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()) if given.cuda else torch.device("cpu")
if given.cuda:
    torch.cuda.set_device(device)  # where NCCL looks

torch.manual_seed(0)
inputs = torch.randn(given.samples, 8)
targets = (inputs @ torch.randn(8, 1)).tanh().to(device)
inputs = inputs.to(device)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=given.rate, momentum=0.9)

job = train.join(gang=train_torch.ProcessGroup(given.backend))
train_torch.keep(job, model=model, optimizer=optimizer)
noise = train_torch.NoiseOfGang(job)
parallel: DistributedDataParallel | None = None


def wrap(job: train.Job) -> None:
    """The gang is another one now: so must be who averages over it."""
    global parallel
    parallel = None
    gc.collect()  # the old one looks at gradients as long as it is there
    parallel = DistributedDataParallel(model)
    parallel.register_comm_hook(None, noise.hook())


wrap(job)
job.on_switch(wrap)

first = job.step
for batch in job.loader(range(given.samples), batch=given.batch, epochs=given.epochs):
    own = list(batch)
    # all ranks together: the mean over the whole step; DDP divides by the number of ranks, so each multiplies by it
    assert parallel is not None
    errors = (parallel(inputs[own]) - targets[own]).square()
    loss = errors.sum() * job.world / batch.total
    optimizer.zero_grad()
    loss.backward()
    noise.end_step()
    for group in optimizer.param_groups:
        group["lr"] = given.rate * job.rate_factor("adascale")
    optimizer.step()
    job.report(loss=float(loss))
    time.sleep(given.pause)
    if job.step - first == given.leave_after:
        job.flags.stop = True

if job.rank == 0:
    with torch.no_grad():
        final = float((model(inputs) - targets).square().mean())
    total = sum(float(one.detach().double().sum()) for one in model.parameters())
    print(f"loss {final:.9f} weights {total:.9f} after {job.step} steps")
job.close()
dist.destroy_process_group()
