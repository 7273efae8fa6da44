"""The parameters of GAIA, by the names of its own command line, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.errors import UsageError
from gantline.core.policy import Policy
from gantline.core.takes import about

SCHEDULING = (
    "carbon",
    "cost",
    "carbon-cost",
    "carbon-spot",
    "carbon-cost-spot",
    "suspend-resume",
    "suspend-resume-spot",
    "suspend-resume-threshold",
    "suspend-resume-spot-threshold",
)
CARBON = ("lowest", "waiting", "oracle", "cst_average", "cst_oracle")


@dataclass(frozen=True)
class GaiaSettings(Policy):
    """What GAIA is told; regime `gaia` imitates its simulator, the default engine runs its ideas on a cluster of your own."""

    name: ClassVar[str] = "gaia"
    paper: ClassVar[str] = "Hanafy et al., Going Green for Less Green: Optimizing the Cost of Reducing Cloud Carbon Emissions, ASPLOS 2024"

    scheduling: str = field(default="carbon", metadata=about(f"when a job runs: {', '.join(SCHEDULING)}", one_of=SCHEDULING))
    carbon: str = field(
        default="cst_average",
        metadata=about(
            "which start: lowest (slot), waiting (window), cst_average (saving per time), oracle and cst_oracle (true length)",
            one_of=CARBON,
        ),
    )
    waiting: str = field(
        default="6x24", metadata={"help": "hours that jobs below and from two hours may wait: 6x24, or one number for both"}
    )
    reserved: int = field(default=0, metadata=about("machines already paid for, on which the -cost forms start jobs early", low=0))
    start: int | None = field(
        default=None, metadata=about("regime gaia: first hour of the series (7000 unless given)", low=0, unit="hours")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.patience()

    def patience(self) -> tuple[int, int]:
        """Hours that short and long jobs may wait."""
        parts = self.waiting.split("x")
        if len(parts) > 2 or not all(part.isdecimal() and int(part) <= 720 for part in parts):
            raise UsageError(
                f"waiting is '{self.waiting}'", where="policy 'gaia'", fix="give whole hours up to 720: 6x24 (short jobs x long jobs) or 12"
            )
        return int(parts[0]), int(parts[-1])

    @property
    def work_conserving(self) -> bool:
        return "cost" in self.scheduling

    @property
    def spot(self) -> bool:
        return "spot" in self.scheduling

    @property
    def suspends(self) -> bool:
        return self.scheduling.startswith("suspend-resume")

    @property
    def by_threshold(self) -> bool:
        return self.scheduling.endswith("threshold")
