"""Ends runs that would go on for ever: slots so short that the costs of a round use them up."""

from __future__ import annotations

from dataclasses import dataclass

from gantline.core.errors import RefusedError

_ROUNDS = 1000  # without an arrival, an end or progress: no later one will have any


@dataclass
class Patience:
    """How long nothing has happened."""

    slot: float
    idle: int = 0

    def wait(self, moved: bool) -> None:
        """Count a round; `moved` says whether a job arrived, ended or progressed in it."""
        self.idle = 0 if moved else self.idle + 1
        if self.idle > _ROUNDS:
            fault = f"no job progresses: rounds cost jobs seconds, and a slot has only {self.slot:g}"
            raise RefusedError(fault, where="--regime elasticflow", fix="a longer --round")
