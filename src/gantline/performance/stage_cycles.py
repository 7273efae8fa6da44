"""Jobs that share devices stage by stage, as a performance model: how fast each goes follows from the stage times of all of its group.

The stage times of a job are metrics, seconds of an iteration: `stage_load` (storage and CPU), `stage_gpu`, `stage_network`, and
`iteration_time` for the whole of it, alone.
"""

from __future__ import annotations

STAGES = ("stage_load", "stage_gpu", "stage_network")
ITERATION = "iteration_time"
