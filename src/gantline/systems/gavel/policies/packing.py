"""Policies that let two jobs share devices: where they learn how fast two jobs are together.

All pairs may be measured, or only some: then the rest are estimated by matrix completion against reference jobs, and what
a pair really does is known once it has run (Gavel, OSDI 2020, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gantline.core.arrays import Floats
from gantline.core.constraints import param
from gantline.core.snapshot import Snapshot
from gantline.models.sharing.matrix_completion import EstimationError, Profiling
from gantline.models.sharing.throughput_model import ThroughputModel, measured
from gantline.systems.gavel.policies.policy import GavelPolicy


@dataclass(frozen=True)
class PackingPolicy(GavelPolicy):
    """Base of those that pack."""

    packs: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"pairs"})

    profiling: float = field(
        default=1.0,
        metadata=param("part of the pairs with reference jobs that is measured for a new job", above=0.0, high=1.0, unit="a part"),
    )
    references: int = field(default=0, metadata=param("number of reference jobs (0: every job type is one)", low=0))

    @property
    def estimates(self) -> bool:
        """Whether some pairs are estimated."""
        return self.profiling < 1 or self.references > 0

    def believed(self, model: ThroughputModel, seed: int) -> Floats:
        """Speeds of pairs [key, key, type] before any has run."""
        if not self.estimates:
            return model.paired
        return model.believed(self._profiling(model), seed)

    def estimation_error(self, model: ThroughputModel, seed: int) -> EstimationError | None:
        """How far those speeds are from the measured ones; None if nothing is estimated."""
        return model.estimation_error(self._profiling(model), seed) if self.estimates else None

    def summary_of(self, model: Any, seed: int) -> dict[str, Any]:
        error = self.estimation_error(model, seed) if isinstance(model, ThroughputModel) else None
        if error is None:
            return {}
        return {
            "estimation_error": error.mean,
            "estimation_error_rms": error.root_mean_square,
            "pairs_taken_for_impossible": error.mistaken_as_impossible,
            "pairs_taken_for_possible": error.mistaken_as_possible,
        }

    def _profiling(self, model: ThroughputModel) -> Profiling:
        return Profiling(self.profiling, self.references or len(model.table.keys))

    def together(self, snapshot: Snapshot, runs: list[list[int]]) -> Floats | None:
        model = snapshot.performance
        if not isinstance(model, ThroughputModel):
            return None
        if self.estimates:
            return measured(self.believed(model, snapshot.seed), model.paired, [(a, b, j) for a, b, j in runs])
        model.refuse_unknown_pairs(model.rows(snapshot.jobs.ids))
        return model.paired
