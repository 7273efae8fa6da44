"""Where a look at a cluster comes from: ``slurm`` or ``kubernetes``, with ``:FILE`` a recording of it."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import UsageError
from gantline.live.watch.slurm_recording import read_recording, record
from gantline.live.watch.slurm_snapshot import watched
from gantline.live.watch.slurm_state import read_state
from gantline.live.watch.watched import ClusterLook


def look(source: str) -> ClusterLook:
    """One look at the cluster that is named."""
    name, _, file = source.partition(":")
    if name not in ("slurm", "kubernetes"):
        raise UsageError(f"'{name}' cannot be watched", where="--watch", fix="write slurm or kubernetes, and :FILE for a recording")
    recording = Path(file) if file else None
    return look_at_slurm(recording) if name == "slurm" else look_at_kubernetes(recording)


def look_at_slurm(recording: Path | None = None, as_json: bool = False) -> ClusterLook:
    """Slurm as its commands show it now, as text or JSON, or as a recording of either shows it."""
    text, where = (record(as_json), "slurm") if recording is None else (read_recording(recording), str(recording))
    return watched(read_state(text, where))


def look_at_kubernetes(recording: Path | None = None, kubeconfig: str = "", context: str = "") -> ClusterLook:
    """A Kubernetes cluster as its API shows it now, or as kubectl has printed it."""
    from gantline.live.watch.kubernetes_snapshot import kubernetes_look, recorded_state, state_now

    return kubernetes_look(state_now(kubeconfig, context) if recording is None else recorded_state(recording))
