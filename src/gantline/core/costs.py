"""What it costs to start, resume, resize, move and switch a gang, and how often work is saved: the simplest model of costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from gantline.core.errors import UsageError, near
from gantline.core.units import LONGEST, seconds


@dataclass(frozen=True)
class Costs:
    """Seconds. `checkpoint` is the time between saves: a failure loses what was done since (0: nothing is ever lost).

    `doubling` is what each doubling of a gang's devices adds to any cost that is not zero.
    """

    start: float = 0.0
    resume: float = 0.0
    resize: float = 0.0
    move: float = 0.0
    checkpoint: float = 0.0
    doubling: float = 0.0
    switch: float | None = None  # when its turn comes again in a rotation; None: as `resume`

    def __post_init__(self) -> None:
        for item in fields(self):
            if getattr(self, item.name) is not None and not getattr(self, item.name) >= 0:
                raise UsageError(f"cost '{item.name}' is {getattr(self, item.name)}", where="costs", fix="use zero or more seconds")
            if item.name != "checkpoint" and (getattr(self, item.name) or 0.0) > LONGEST:  # never to save is to save after infinity
                raise UsageError(f"cost '{item.name}' is {getattr(self, item.name):g} s", where="costs", fix="use at most 300 years")

    @property
    def free(self) -> bool:
        """Whether stopping and moving gangs costs nothing."""
        return not (self.resume or self.move)

    def scaled(self, cost: float, devices: int) -> float:
        """What a change costs a gang of so many devices."""
        return cost + self.doubling * math.log2(devices) if cost > 0 and devices > 1 else cost

    @property
    def of_switch(self) -> float:
        """Seconds when a job's turn comes again in its rotation."""
        return self.resume if self.switch is None else self.switch

    @staticmethod
    def parse(text: str) -> Costs:
        """Costs from ``start=30,resume=60``; a single number is the cost of start, resume, resize and move alike.

        ``measured`` are those that ElasticFlow's authors measured and charge (ASPLOS 2023): 4 s to set up the worker of one GPU, 2 s more
        for each doubling, 27 s more where trainers restart. Muri's restarts (SIGCOMM 2022) took 4 to 40 s by model, Pollux (OSDI 2021)
        charges 30. ``stop-resume`` and ``stop-free`` are the two ways to resize of EDL (Wu et al., TPDS 2022): all workers stop, save and
        start again, which takes 30 s and more; or newcomers get ready while the others train, and all pause for about a second.
        """
        if not text:
            return Costs()
        if text in NAMED:
            return NAMED[text]
        if "=" not in text:
            value = seconds(text, "--costs")
            return Costs(start=value, resume=value, resize=value, move=value)
        known = {item.name for item in fields(Costs)}
        values: dict[str, float] = {}
        for part in text.split(","):
            name, _, amount = part.partition("=")
            if name.strip() not in known:
                raise UsageError(f"no cost '{name.strip()}'", where="--costs", fix=near(name.strip(), known))
            if name.strip() in values:
                raise UsageError(f"the cost '{name.strip()}' is given twice", where="--costs", fix="keep one of them")
            values[name.strip()] = seconds(amount, f"--costs {name.strip()}")
        return Costs(**values)


MEASURED = Costs(start=4.0, resume=31.0, resize=31.0, move=31.0, doubling=2.0)
STOP_RESUME = Costs(start=30.0, resume=30.0, resize=30.0, move=30.0)
STOP_FREE = Costs(start=30.0, resume=30.0, resize=1.0, move=1.0)
NAMED = {"measured": MEASURED, "stop-resume": STOP_RESUME, "stop-free": STOP_FREE}
