"""Other names under which the native columns are met, with the unit that the name states."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gantline.traces.schema import COLUMNS

_NAMES: Mapping[str, tuple[str, ...]] = {
    "job": ("job_id", "jobid", "id", "job_name", "job_index", "name"),
    "arrival": ("arrival_time", "submit", "submit_time", "submitted", "submitted_time", "submission_time"),
    "gpus": ("gpu", "num_gpus", "num_gpu", "n_gpus", "ngpus", "gpu_num", "gpu_count", "gpus_requested", "num_replicas"),
    "duration": ("run_time", "runtime", "running_time", "elapsed", "service_time", "execution_time"),
    "user": ("user_id", "username", "user_name", "owner"),
    "queue": ("vc", "queue_name", "partition", "virtual_cluster"),
    "app": ("application",),
    "model": ("model_name",),
    "type": ("gpu_type", "device_type", "accelerator"),
    "cpus": ("num_cpus", "cpu_num", "ncpus"),
    "memory": ("mem", "mem_gb", "memory_gb"),
    "batch_size": ("batchsize", "bs"),
}
_ALIASES = {alias: name for name, aliases in _NAMES.items() for alias in aliases}
SECONDS_PER_UNIT: Mapping[str, float] = {
    "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "min": 60.0, "mins": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hours": 3600.0, "days": 86400.0,
}  # fmt: skip


def alias_of(name: str) -> str | None:
    """The native column that a foreign name means: ``alias_of("Submit_Time_ms") == "arrival"``."""
    return _resolve(name)[0]


def unit_of(name: str) -> float | None:
    """Seconds per unit that the name states (``run_time_h``: 3600); None where it states none."""
    return _resolve(name)[1]


def _resolve(name: str) -> tuple[str | None, float | None]:
    plain = re.sub(r"[\s\-.]+", "_", name.strip().lower())
    if plain in _ALIASES or plain in COLUMNS:
        return _ALIASES.get(plain, plain if plain != name else None), None
    stem, _, unit = plain.rpartition("_")
    native = _ALIASES.get(stem, stem if stem in COLUMNS else None)
    if native is not None and unit in SECONDS_PER_UNIT and COLUMNS[native].unit == "s":
        return native, SECONDS_PER_UNIT[unit]
    return None, None
