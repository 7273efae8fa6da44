"""A data-parallel job in plain Python that grows and shrinks without a stop: ranks average over sockets.

    gantline submit gang.yaml      # processes: gpus; elastic: {min: 1, max: 4, live: true}; run: [python, examples/train_gang.py]

New ranks prepare beside those that run, and join between two steps. Every sample is seen once per epoch, whoever sees it.
"""

from __future__ import annotations

import argparse
import os
import random
import time

from gantline import train

parser = argparse.ArgumentParser(description="Fit y = 3x - 1 by gradient descent, on as many ranks as there are devices.")
parser.add_argument("--samples", type=int, default=240)
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--pause", type=float, default=0.0, help="seconds that each step takes on top")
parser.add_argument("--seen", default="", help="a file for a line per step and rank: step, rank, ranks, process, samples")
given = parser.parse_args()

rng = random.Random(0)
data = [(x, 3 * x - 1 + rng.gauss(0, 0.1)) for x in (rng.uniform(-1, 1) for _ in range(given.samples))]

gang = train.SocketGang()
job = train.join(gang=gang)
job.keep()  # a newcomer waits here until the others take it in; job.state is theirs then
slope, offset = job.state.get("weights", (0.0, 0.0))

for batch in job.loader(data, batch=given.batch, epochs=given.epochs):
    errors = [(slope * x + offset - y, x) for x, y in batch]
    down, left, loss = gang.sum([sum(e * x for e, x in errors), sum(e for e, _ in errors), sum(e * e for e, _ in errors)])
    slope, offset = slope - 0.3 * down / batch.total, offset - 0.3 * left / batch.total
    job.state["weights"] = (slope, offset)
    job.report(loss=loss / batch.total)
    if given.seen:
        with open(given.seen, "a", encoding="utf-8") as file:
            file.write(f"{batch.step} {job.rank} {job.world} {os.getpid()} {','.join(map(str, batch.indices))}\n")
    time.sleep(given.pause)

if job.rank == 0:
    print(f"slope {slope:.9f} offset {offset:.9f} after {job.step} steps")
