"""A plan as columns: what each job holds, asked for again or for the first time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gantline.core.plan import Assignments, Mode
from gantline.core.snapshot import Snapshot


@dataclass
class GrantColumns:
    """Jobs with devices on which others may join them (SPACE), or of their own."""

    job: list[int] = field(default_factory=list)
    option: list[int] = field(default_factory=list)
    devices: list[tuple[int, ...]] = field(default_factory=list)
    mode: list[Mode] = field(default_factory=list)
    purpose: list[str] = field(default_factory=list)
    limit: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.job)

    def add(
        self, job: int, option: int, devices: tuple[int, ...], mode: Mode = Mode.EXCLUSIVE, purpose: str = "train", limit: float = math.inf
    ) -> None:
        """One job of the plan."""
        for column, value in zip(vars(self).values(), (job, option, devices, mode, purpose, limit)):
            column.append(value)

    def keep(self, snapshot: Snapshot, positions: list[int]) -> None:
        """These jobs go on as they are."""
        jobs = snapshot.jobs
        options = jobs.option.tolist()
        for position in positions:
            grant = jobs.grant(position)
            if grant is None:
                self.add(position, options[position], ())
            else:
                held = grant.assignment
                self.add(position, held.option, held.devices, held.mode, held.purpose, held.limit)

    def assignments(self) -> Assignments:
        return Assignments(
            self.job,
            option=self.option,
            devices=self.devices,
            mode=[int(mode) for mode in self.mode],
            purpose=self.purpose,
            limit=self.limit,
        )
