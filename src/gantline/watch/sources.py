"""Where a look at a cluster comes from: ``slurm``, or ``slurm:FILE`` for a recording."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import UsageError
from gantline.watch.slurm_recording import read_recording, record
from gantline.watch.slurm_snapshot import watched
from gantline.watch.slurm_state import read_state
from gantline.watch.watched import ClusterLook


def look(source: str) -> ClusterLook:
    """One look at the cluster that is named."""
    name, _, file = source.partition(":")
    if name != "slurm":
        raise UsageError(f"'{name}' cannot be watched", where="--watch", fix="write slurm, or slurm:FILE")
    return look_at_slurm(Path(file) if file else None)


def look_at_slurm(recording: Path | None = None) -> ClusterLook:
    """Slurm as its commands show it now, or as a recording shows it."""
    text, where = (record(), "slurm") if recording is None else (read_recording(recording), str(recording))
    return watched(read_state(text, where))
