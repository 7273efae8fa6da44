"""Options of its own that the runner of one machine has. Imports nothing heavy, because help reads it."""

from __future__ import annotations

from collections.abc import Mapping

from gantline.live.amounts import storage_bandwidth
from gantline.live.runner_options import RunnerOption

OPTIONS = (
    RunnerOption("storage", "What the machine can read from storage, for jobs to book: 500MB/s. By default jobs cannot ask for any."),
)


def storage_of(options: Mapping[str, str]) -> float:
    """MB/s that jobs may book."""
    return storage_bandwidth(options.get("storage", "0"), "--storage")
