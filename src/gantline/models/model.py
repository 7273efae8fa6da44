"""What a performance model is: how fast gangs really go, what changes cost them, and what a profiler would see.

A run has at most one model (`simulate(..., performance=model)`), and it is asked about every gang, however it was started: a ranking, an
assignment, the same model for baselines and for policies that know it. A model is a value: parameters, and functions of what
it is told. What it learns goes into `learned`, a plain value that is kept beside the policy's memory and is part of every snapshot.

Subclass `PerformanceModel` and override what you know; everything else stays as the options of the jobs and `Costs` say::

    @dataclass(frozen=True)
    class HalfSpeed(PerformanceModel):
        def rates(self, gangs):
            return 0.5 * gangs.divided, np.full(len(gangs), np.inf)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError
from gantline.models.gangs import Gang as Gang
from gantline.models.gangs import Gangs as Gangs
from gantline.models.gangs import Mate as Mate
from gantline.models.gangs import Neighbour as Neighbour


class Act(IntEnum):
    """What a gang pays for: seconds during which it holds its devices and does no work."""

    START = 0  # for the first time
    RESUME = 1  # after a stop
    RESIZE = 2  # another number of devices of the same type, without a stop
    MOVE = 3  # other devices, without a stop
    SWITCH = 4  # its turn in its rotation comes again


class Observed(NamedTuple):
    """What a model has seen of the gangs it was shown."""

    metrics: Mapping[str, Floats] = {}  # name -> one value per gang; policies read them as `jobs.metric(name)`
    learned: Any = None  # the next value of `gangs.learned`: numbers, texts, lists and dictionaries


class PerformanceModel(Protocol):
    """How fast gangs go and what changes cost. All methods are pure; each may be left as it is here."""

    #: whether it has a view on the speed of gangs of their own; False: what it knows of that is in their options already
    about_gangs: ClassVar[bool] = True
    #: whether a speed depends on others than the gang's mates (links, a file system): then all are asked whenever a gang comes or goes
    about_everyone: ClassVar[bool] = False
    #: whether gangs do otherwise than `rates` and `cost` let the scheduler expect: executor 'measured' does as `takes` and `goes` say
    does_otherwise: ClassVar[bool] = False

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        """Work per second of each gang, and the instant until which that holds (infinity: until it, or what runs beside it, changes).

        Here: divided as grants say, and `granted` for gangs with a grant.
        """
        rate, until = gangs.divided.copy(), np.full(len(gangs), np.inf)
        for at in np.flatnonzero(gangs.special).tolist():
            found = self.granted(gangs[at])
            if found is not None:
                rate[at], until[at] = found if isinstance(found, tuple) else (found, np.inf)
        return rate, until

    def granted(self, gang: Gang) -> float | tuple[float, float] | None:
        """The same for one gang whose grant says more than its option: work per second, or (that, until when); None: divided."""
        return None

    def rate(self, job: str, type: int, gpus: int) -> float | None:
        """The scaling curve: work per second of a job alone on so many devices of a type; None: in proportion to an option of that type."""
        return None

    def rate_on(self, job: str, type: int, gpus: int, nodes: Sequence[int], cluster: Cluster) -> float | None:
        """The same on these very nodes; None: unknown."""
        return None

    def cost(self, gangs: Gangs) -> Floats | None:
        """Seconds at speed zero that each gang pays for its `act`; NaN or None: as `Costs` says."""
        return None

    def leave(self, job: str, model: str, type: str, gpus: int, now: float) -> float:
        """Seconds that a job needs to save and leave its devices when it is asked to, now; executor 'measured' takes them."""
        return 0.0

    def takes(self, job: str, expected: float) -> float:
        """Seconds that the latest start of a job takes, for which so many are expected."""
        return expected

    def goes(self, job: str, model: str, type: str, gpus: int, expected: float) -> float:
        """Work per second of a gang from which so much is expected."""
        return expected

    def drawn(self, number: int) -> PerformanceModel | None:
        """The same model with times and speeds drawn from what was measured, in the draw of that number; None: it has no spread."""
        return None

    def goodputs(self, learned: Any, name: str, kind: int, sizes: Ints) -> Floats | None:
        """Progress per second of a job that chooses its batch [on one node or several, size], as fitted so far; None: it has not run."""
        return None

    def best_batches(self, job: str, type: int, most: int) -> tuple[Ints, Floats] | None:
        """For 0, 1, ... at least `most` devices the fastest batch and its work per second; None: it has no choice."""
        return None

    def profiled(self, job: str) -> list[list[float]]:
        """(servers, workers, steps per second) of short runs with parameter servers."""
        return []

    def slowdown(self, network: str, nodes: Sequence[int], cluster: Cluster) -> float:
        """How many times slower a gang on these nodes is than on one machine."""
        return 1.0

    def observe(self, gangs: Gangs) -> Observed | None:
        """What a profiler sees of running jobs, before each decision; None: nothing new."""
        return None


#: what only some models have a view on: policies ask whether this one does (`overrides`). A model that keeps true speeds to itself has
#: beside these `known_speeds(learned, job, asked, sizes)`: work per second at each size as far as it can be known; `asked`: its own size
VIEWS = frozenset({"goodputs", "best_batches", "profiled", "slowdown"})


def check_model(model: Any) -> Any:
    """The model of a run, if it is one; a run with something else is refused rather than run at other speeds than meant."""
    if model is None:
        return None
    parts = [name for name in vars(PerformanceModel) if not name.startswith("_") and name not in VIEWS]
    missing = [name for name in parts if not hasattr(model, name)]
    if missing:
        raise UsageError(
            f"a {type(model).__name__} has no {', '.join(missing)}",
            where="performance",
            fix="subclass gantline.models.model.PerformanceModel and override what it knows",
        )
    return model


def overrides(model: object, name: str) -> bool:
    """Whether a model says anything of its own under that name."""
    return model is not None and getattr(type(model), name, None) not in (None, getattr(PerformanceModel, name))
