"""Writes the profiles beside this file: two made-up networks on three made-up device types, from round numbers and no measurement.

They have the layout that Pollux and Sia published, so that everything that needs profiles runs from a fresh clone. Run it again after
changing a number: ``python examples/profiles/make.py``.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from gantline.performance.goodput.efficiency import gain
from gantline.performance.goodput.speed_model import SpeedModel

HERE = Path(__file__).parent

# speed of a type relative to the first, and devices per node
TYPES = {"small": (1.0, 4), "medium": (2.2, 4), "large": (4.0, 8)}
# local batches, total batches, epochs, steps per epoch at the first batch, and the seven parameters of its speed
NETWORKS = {
    "vision": ((16, 32, 64, 128), (64, 128, 256, 512, 1024, 2048), 30, 400, (0.02, 0.004, 0.25, 0.012, 0.06, 0.004, 1.5)),
    "speech": ((4, 8, 16), (16, 32, 64, 128, 256), 12, 500, (0.10, 0.030, 0.60, 0.030, 0.15, 0.010, 1.2)),
}
SHAPES = ("1", "2", "3", "4", "11", "12", "22", "13", "14", "24", "34", "44", "112", "222", "444", "1111", "2222", "4444")
LARGE = ("5", "6", "7", "8", "48", "88")


def main() -> None:
    """Write all files."""
    for name, (local, totals, epochs, steps, seconds) in NETWORKS.items():
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        for kind, (speed, per_node) in TYPES.items():
            p = np.array(seconds)
            p[:2] /= speed
            model = SpeedModel(p)
            shapes = SHAPES + (LARGE if per_node == 8 else ())
            rows = [(shape, batch, *times(model, len(shape), sum(map(int, shape)), batch)) for shape in shapes for batch in local]
            write(folder / f"placements-{kind}.csv", "placement local_bsz step_time sync_time", rows)
            wide = [(n, n * per_node, batch, *times(model, n, n * per_node, batch)) for n in (6, 8, 12, 16) for batch in local]
            write(folder / f"scalability-{kind}.csv", "num_nodes num_replicas local_bsz step_time sync_time", wide)
        for batch in totals:
            write(
                folder / f"validation-{batch}.csv", "progress iteration metric grad_sqr grad_var", course(batch, totals[0], epochs, steps)
            )


def times(model: SpeedModel, nodes: int, replicas: int, batch: int) -> tuple[float, float]:
    """Seconds of a step and of averaging in it."""
    step = float(model.step_time(nodes, replicas, batch))
    compute = float(model.parameters[0] + model.parameters[1] * batch)
    return round(step, 6), round(max(step - compute, 0.0), 6)


def course(batch: int, base: int, epochs: int, steps: int) -> list[tuple[float, ...]]:
    """Epoch by epoch the same data; the noise of the gradient grows, so that large batches lose less and less."""
    rows, progress, iteration = [], 0.0, 0
    for epoch in range(epochs):
        variance = 2.0 + 60.0 * ((epoch + 1) / epochs) ** 2
        count = max(round(steps / gain(1.0, variance, batch / base)), 1)
        iteration += count
        progress = steps * (epoch + 1) * (1.0 + 0.0004 * (batch / base - 1) ** 0.5)
        rows.append((round(progress, 3), iteration, round(100 * (1 - 0.9 ** (epoch + 1)), 2), 1.0, round(variance, 4)))
    return rows


def write(path: Path, columns: str, rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns.split())
        writer.writerows(rows)


if __name__ == "__main__":
    main()
