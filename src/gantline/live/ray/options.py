"""Options of its own that the runner of a Ray cluster has. Imports nothing heavy, because help reads it."""

from __future__ import annotations

from gantline.live.runner_options import RunnerOption

OPTIONS = (
    RunnerOption(
        "ray-address",
        "The Ray cluster, as HOST:PORT or 'auto' for one that runs on this machine. By default RAY_ADDRESS, else a cluster of its own.",
    ),
    RunnerOption(
        "ray-checkpoints",
        "A folder that all nodes of the cluster share, for the saved work of jobs. By default the service's own folder.",
    ),
)
