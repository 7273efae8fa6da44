"""A training job in plain Python: fits a line by gradient descent.

    python examples/train_plain.py
    gantline submit -- python examples/train_plain.py

It may be stopped and started again at any step, with any number of devices, and ends at the same weights.
"""

from __future__ import annotations

import argparse
import random
import time

from gantline import train

parser = argparse.ArgumentParser(description="Fit y = 3x - 1 by gradient descent.")
parser.add_argument("--samples", type=int, default=256)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--pause", type=float, default=0.0, help="seconds that each step takes on top")
given = parser.parse_args()

rng = random.Random(0)
data = [(x, 3 * x - 1 + rng.gauss(0, 0.1)) for x in (rng.uniform(-1, 1) for _ in range(given.samples))]

job = train.join()
job.keep()  # no functions: what is in job.state is all there is to keep
slope, offset = job.state.get("weights", (0.0, 0.0))

for batch in job.loader(data, batch=given.batch, epochs=given.epochs):
    errors = [(slope * x + offset - y, x) for x, y in batch]
    rate = 0.3 * job.rate_factor("linear") / batch.total
    slope -= rate * sum(error * x for error, x in errors)
    offset -= rate * sum(error for error, _ in errors)
    job.state["weights"] = (slope, offset)
    job.report(loss=sum(error**2 for error, _ in errors) / max(len(errors), 1))
    time.sleep(given.pause)

print(f"slope {slope:.12f} offset {offset:.12f} after {job.step} steps")
