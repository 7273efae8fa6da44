"""Options of its own that the runner of a Slurm allocation has. Imports nothing heavy, because help reads it."""

from __future__ import annotations

from gantline.live.runner_options import RunnerOption

OPTIONS = (
    RunnerOption(
        "slurm-job", "The allocation, by the id of its Slurm job. By default the one that the service is started in (SLURM_JOB_ID)."
    ),
    RunnerOption(
        "slurm-checkpoints",
        "A folder that all nodes of the allocation share, for the saved work of jobs. By default the service's own folder.",
    ),
)
