"""Profiles of our own making: two made-up networks on three made-up device types, from round numbers and no measurement.

They have the shape of the published ones, so that whatever needs profiles runs without them. `examples/profiles` are the same as files.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.efficiency import gain
from gantline.models.goodput.measured import Application, Profiles, StepTimes, Training, least_rotation
from gantline.models.goodput.speed_model import SpeedModel

#: speed of a type relative to the first, and devices per node
TYPES = {"small": (1.0, 4), "medium": (2.2, 4), "large": (4.0, 8)}
#: local batches, total batches, epochs, steps per epoch at the first batch, and the seven parameters of its speed
NETWORKS = {
    "vision": ((16, 32, 64, 128), (64, 128, 256, 512, 1024, 2048), 30, 400, (0.02, 0.004, 0.25, 0.012, 0.06, 0.004, 1.5)),
    "speech": ((4, 8, 16), (16, 32, 64, 128, 256), 12, 500, (0.10, 0.030, 0.60, 0.030, 0.15, 0.010, 1.2)),
}
_SHAPES = ("1", "2", "3", "4", "11", "12", "22", "13", "14", "24", "34", "44", "112", "222", "444", "1111", "2222", "4444")
_LARGE = ("5", "6", "7", "8", "48", "88")
_WIDE = (6, 8, 12, 16)  # nodes

PLACEMENTS = "placement local_bsz step_time sync_time"
SCALABILITY = "num_nodes num_replicas local_bsz step_time sync_time"
VALIDATION = "progress iteration metric grad_sqr grad_var"

Row = tuple[float | str, ...]


def tables(network: str) -> dict[str, tuple[str, list[Row]]]:
    """The files of a network: name, columns, rows."""
    local, totals, epochs, steps, seconds = NETWORKS[network]
    found: dict[str, tuple[str, list[Row]]] = {}
    for kind, (speed, per_node) in TYPES.items():
        parameters = np.array(seconds)
        parameters[:2] /= speed
        model = SpeedModel(parameters)
        shapes = _SHAPES + (_LARGE if per_node == 8 else ())
        rows: list[Row] = [(shape, batch, *_times(model, len(shape), sum(map(int, shape)), batch)) for shape in shapes for batch in local]
        found[f"placements-{kind}.csv"] = PLACEMENTS, rows
        wide: list[Row] = [(n, n * per_node, batch, *_times(model, n, n * per_node, batch)) for n in _WIDE for batch in local]
        found[f"scalability-{kind}.csv"] = SCALABILITY, wide
    for batch in totals:
        found[f"validation-{batch}.csv"] = VALIDATION, _course(batch, totals[0], epochs, steps)
    return found


def _times(model: SpeedModel, nodes: int, replicas: int, batch: int) -> tuple[float, float]:
    """Seconds of a step and of averaging in it."""
    step = float(model.step_time(nodes, replicas, batch))
    compute = float(model.parameters[0] + model.parameters[1] * batch)
    return round(step, 6), round(max(step - compute, 0.0), 6)


def _course(batch: int, base: int, epochs: int, steps: int) -> list[Row]:
    """Epoch by epoch the same data; the noise of the gradient grows, so that large batches lose less and less."""
    rows: list[Row] = []
    iteration = 0
    for epoch in range(epochs):
        variance = 2.0 + 60.0 * ((epoch + 1) / epochs) ** 2
        iteration += max(round(steps / gain(1.0, variance, batch / base)), 1)
        progress = steps * (epoch + 1) * (1.0 + 0.0004 * (batch / base - 1) ** 0.5)
        rows.append((round(progress, 3), iteration, round(100 * (1 - 0.9 ** (epoch + 1)), 2), 1.0, round(variance, 4)))
    return rows


@cache
def example_profiles() -> Profiles:
    """All of it, as if read from files."""
    return Profiles({name: _application(name) for name in NETWORKS}, "the made-up profiles that ship with Gantline")


def _application(name: str) -> Application:
    files = tables(name)
    batches = sorted(NETWORKS[name][1])
    courses = np.array([[[float(row[k]) for k in (0, 1, 3, 4)] for row in files[f"validation-{batch}.csv"][1]] for batch in batches])
    training = Training(np.array(batches, dtype=np.float64), *(np.ascontiguousarray(courses[:, :, column]) for column in range(4)))
    times: dict[str, StepTimes] = {}
    for kind in TYPES:
        shapes: dict[tuple[int, ...], list[list[float]]] = {}
        for shape, *rest in files[f"placements-{kind}.csv"][1]:
            shapes.setdefault(least_rotation([int(digit) for digit in str(shape)]), []).append([float(value) for value in rest])
        wide: Floats = np.array([[float(value) for value in row] for row in files[f"scalability-{kind}.csv"][1]])
        times[kind] = StepTimes({shape: np.array(rows) for shape, rows in shapes.items()}, wide, f"{name} on {kind}, made up")
    return Application(name, training, times, f"the made-up profile of {name}")
