"""What the scheduler believes of one job's speed on one GPU type: rows that the job has shown, and the model fitted to them.

A row is added the first time that a job runs with so many nodes, replicas and samples per GPU, and the model is fitted again at once. How
far the model before it was off is kept: the error of the belief. Jobs of one application that have shown the same rows have the same model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.goodput.fit import fit, fit_like_artifact
from gantline.models.goodput.speed_model import Observations, SpeedModel, step_time

Row = tuple[float, float, float, float, float]
_ARTIFACT_TOLERANCE = 1e-5

FITS: dict[str, Callable[[Observations], SpeedModel]] = {
    "artifact": lambda seen: fit_like_artifact(seen, _ARTIFACT_TOLERANCE),
    "compiled": fit,
}


@dataclass
class Fitter:
    """Models by what they are fitted to, and how far they were off."""

    method: str = "artifact"
    models: dict[tuple[str, str, tuple[Row, ...]], Floats] = field(default_factory=dict)
    errors: list[float] = field(default_factory=list)  # |predicted / measured - 1| of the step at a row that is new
    asked: int = 0

    def model(self, application: str, kind: str, rows: tuple[Row, ...]) -> Floats:
        """The seven parameters fitted to the rows, in the order in which they were seen."""
        self.asked += 1
        key = application, kind, rows
        found = self.models.get(key)
        if found is None:
            found = self.models[key] = FITS[self.method](Observations.of(rows)).parameters
        return found

    def summary(self) -> dict[str, object]:
        """How many fits, and how wrong beliefs were before each new row."""
        errors = np.array(self.errors)
        return {
            "fits": len(self.models),
            "fits_asked": self.asked,
            "belief_errors": len(errors),
            "belief_error_mean": float(errors.mean()) if len(errors) else None,
            "belief_error_median": float(np.median(errors)) if len(errors) else None,
            "belief_error_p95": float(np.percentile(errors, 95)) if len(errors) else None,
        }


class SiaBelief:
    """Rows and model of one job on one GPU type."""

    __slots__ = ("_fitter", "_name", "_seen", "most_replicas", "parameters", "rows")

    def __init__(self, fitter: Fitter, application: str, kind: str) -> None:
        self._fitter, self._name = fitter, (application, kind)
        self._seen: set[tuple[int, int, int]] = set()
        self.rows: tuple[Row, ...] = ()
        self.parameters: Floats | None = None
        self.most_replicas = 0

    def observe(self, nodes: int, replicas: int, local: int, step: float, sync: float) -> None:
        """A step as it was measured; a row that is new changes the model."""
        key = nodes, replicas, local
        if key in self._seen:
            return
        self._seen.add(key)
        if self.parameters is not None:
            predicted = step_time(self.parameters, nodes, replicas, float(local), 0)
            self._fitter.errors.append(abs(predicted / step - 1.0))
        self.rows += ((float(nodes), float(replicas), float(local), step - sync, step),)
        self.most_replicas = max(self.most_replicas, replicas)
        self.parameters = self._fitter.model(*self._name, self.rows)
