"""`advise` straight from a look, in Python: which policy would serve the jobs best that are there now."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gantline.lab.experiment.advice import Advice
from gantline.lab.experiment.api import Policies, advise, choices_of
from gantline.live.watch.look_as_trace import as_trace
from gantline.live.watch.watched import ClusterLook
from gantline.simulator.signature import with_options


@partial(with_options, single=False)
def advise_look(
    look: ClusterLook,
    policies: Policies,
    *,
    grow: float = 0.1,
    also: Sequence[str] = (),
    workers: int = 1,
    folder: str | Path | None = None,
    **options: Any,
) -> Advice:
    """Compare policies with the one in force on the jobs of a look, and say whether a larger cluster would help.

    >>> found = advise_look(look_at_slurm(), "srtf,las")
    >>> found.answer, found.means
    """
    seen = as_trace(look)
    chosen = seen.beside_present(choices_of(policies))
    chosen_options = {"estimates": "limit", **options}
    found = advise(seen.trace, seen.cluster, chosen, grow=grow, also=also, workers=workers, folder=folder, **chosen_options)
    return found.resting_on([*seen.rests_on, *(f"Note: {note}." for note in seen.notes)])
