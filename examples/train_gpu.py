"""A training job on one GPU (or the CPU where there is none): a small network, saved with its optimiser.

gantline submit --gpus 1 -- python examples/train_gpu.py
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

from gantline import train
from gantline.train import torch as train_torch

parser = argparse.ArgumentParser(description="Train a small network on made-up images.")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=64)
given = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
images = torch.randn(512, 3, 16, 16)
labels = torch.randint(0, 10, (512,))
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 144, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

job = train.join()
train_torch.keep(job, model=model, optimizer=optimizer)
sampler = train.Sampler(len(images), seed=1)
loss = torch.zeros(())
for step in job.steps(given.steps):
    per_epoch = -(-len(images) // given.batch)
    own, _ = sampler.step(train.Position(step // per_epoch, step % per_epoch * given.batch), given.batch)
    loss = nn.functional.cross_entropy(model(images[own].to(device)), labels[own].to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        job.report(loss=float(loss))  # reading the loss waits for the device, so not at every step

print(f"loss {float(loss):.6f} on {device} after {job.step} steps")
