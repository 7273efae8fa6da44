"""An elastic data-parallel job: DistributedDataParallel with gloo on CPUs, any number of ranks before and after a restart.

    torchrun --nproc-per-node 2 examples/train_ddp.py
    gantline submit --gpus 1:4 -- python examples/train_ddp.py

Every step sees the same samples whatever the number of ranks, so that resizing changes nothing but the speed.
"""

from __future__ import annotations

import argparse
import os

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
parser.add_argument("--leave-after", type=int, default=0, help="ask to stop after so many steps, as the scheduler would")
given = parser.parse_args()

for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}.items():
    os.environ.setdefault(name, value)
torch.set_num_threads(1)
dist.init_process_group("gloo")

torch.manual_seed(0)
inputs = torch.randn(given.samples, 8)
targets = (inputs @ torch.randn(8, 1)).tanh()
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=given.rate, momentum=0.9)

job = train.join(sum_over_ranks=train_torch.sum_over_ranks)
train_torch.keep(job, model=model, optimizer=optimizer)
parallel = DistributedDataParallel(model)
noise = train_torch.NoiseOfGang(job)
parallel.register_comm_hook(None, noise.hook())

first = job.step
for batch in job.loader(range(given.samples), batch=given.batch, epochs=given.epochs):
    own = list(batch)
    # all ranks together: the mean over the whole step; DDP divides by the number of ranks, so each multiplies by it
    errors = (parallel(inputs[own]) - targets[own]).square()
    loss = errors.sum() * job.world / batch.total
    optimizer.zero_grad()
    loss.backward()
    noise.end_step()
    for group in optimizer.param_groups:
        group["lr"] = given.rate * job.rate_factor("adascale")
    optimizer.step()
    job.report(loss=float(loss))
    if job.step - first == given.leave_after:
        job.flags.stop = True

if job.rank == 0:
    with torch.no_grad():
        final = float((model(inputs) - targets).square().mean())
    total = sum(float(one.detach().double().sum()) for one in model.parameters())
    print(f"loss {final:.9f} weights {total:.9f} after {job.step} steps")
job.close()
dist.destroy_process_group()
