"""Gavel's 26 job templates (OSDI 2020, Table 2), in the order in which its generators draw from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gantline.core.errors import NotFoundError, near
from gantline.core.json_reader import loads
from gantline.traces.generators.given import fault, number


class Template(NamedTuple):
    """A model with a batch size; only some can run on more than one GPU."""

    model: str
    batch_size: int | None
    distributable: bool

    @property
    def name(self) -> str:
        """The job type as Gavel's traces and throughput tables spell it."""
        return self.model if self.batch_size is None else f"{self.model} (batch size {self.batch_size})"


_BATCHES: tuple[tuple[str, tuple[int, ...], bool], ...] = (
    ("ResNet-18", (16, 32, 64, 128, 256), True),
    ("ResNet-50", (16, 32, 64, 128), True),
    ("Transformer", (16, 32, 64, 128, 256), True),
    ("LM", (5, 10, 20, 40, 80), True),
    ("Recommendation", (512, 1024, 2048, 4096, 8192), False),
)
TEMPLATES: tuple[Template, ...] = (
    *(Template(model, size, many) for model, sizes, many in _BATCHES for size in sizes),
    Template("A3C", None, False),
    Template("CycleGAN", None, False),
)


class ModelSpeeds:
    """Steps per second of a job type on so many GPUs of one device type, from a table in Gavel's layout."""

    def __init__(self, table: object, device: str) -> None:
        if isinstance(table, str | Path):
            if not Path(table).is_file():
                raise NotFoundError(f"there is no file '{table}'", where="setting 'throughputs'")
            table = loads(Path(table).read_text())
        if not isinstance(table, Mapping):
            raise fault("throughputs", "is neither a table nor the name of a JSON file")
        if device not in table:
            raise fault("device", f"the throughput table has no type '{device}'", near(device, table))
        self._row: Mapping[str, object] = table[device]

    def of(self, job_type: str, gpus: int) -> float:
        """Steps per second when the job has its GPUs for itself."""
        key = throughput_key(job_type, gpus)
        entry = self._row.get(key)
        alone = entry.get("null") if isinstance(entry, Mapping) else entry
        if alone is None:
            raise fault("throughputs", f"the table has no entry {key}")
        return number(alone, "throughputs")


def throughput_key(job_type: str, gpus: int) -> str:
    """The key of a job in Gavel's throughput tables."""
    return f"('{job_type}', {gpus})"
