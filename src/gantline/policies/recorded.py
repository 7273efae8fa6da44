"""`recorded`: follows a table of decisions instead of making any, so that a simulator can be held against a recorded run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.errors import RefusedError
from gantline.core.policy import Policy

_REGIMES = ("sia", "shockwave")  # whose loops read the table


@dataclass(frozen=True)
class Recorded(Policy):
    """Gives each job what a table says, from the time on that it says."""

    name: ClassVar[str] = "recorded"

    table: str = field(default="", metadata={"help": "CSV file with t_s, name, gpu_type, nodes, gpus; regime shockwave: round, jobs"})
    fit: str = field(default="artifact", metadata={"help": "regime sia: how models are fitted, 'artifact' or 'compiled'"})

    def for_regime(self, regime: str) -> Recorded:
        if regime not in _REGIMES:
            raise RefusedError(
                f"regime '{regime}' does not follow recorded decisions",
                where="policy 'recorded'",
                fix="use --regime " + " or ".join(_REGIMES),
            )
        return self
