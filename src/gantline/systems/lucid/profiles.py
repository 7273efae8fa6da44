"""What Lucid's simulator reads beside the log: configurations measured alone and in pairs, and the predictions of its models.

The folder holds ``single_data.csv``, ``colocate_info.csv``, ``venus_sept_ebm_duration_pred.csv`` (lucid), the same with ``lgb`` (qssf) and
``venus_sept_throughput_pred.csv``. Each is read when a policy asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, TraceError
from gantline.traces.files.speeds import ALONE, PAIRS, PARTS, keys_of
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.read import RawTable

_UNDISTURBED = ("NeuMF", "ResNet50", "BERT", "Transformer")
"""Networks whose pairs the original takes to run at full speed, whatever its table says."""


class Configuration(NamedTuple):
    """What a job trains, how much device memory that takes (MB), and its sharing score: 0 tiny, 1 medium, 2 jumbo."""

    key: str
    memory: float
    score: int

    @property
    def network(self) -> str:
        return self.key.partition("/")[0]


class PairRates(NamedTuple):
    """Speeds of a job that joins another, and of its host, relative to running alone."""

    guest: float
    host: float


@dataclass(frozen=True)
class LucidProfiles:
    """A folder of Lucid's files."""

    folder: Path

    @cached_property
    def configurations(self) -> dict[str, Configuration]:
        """Configurations measured alone, by key."""
        raw = self._table(ALONE, (*PARTS, "gmem", "label"))
        rows = zip(keys_of(raw), number(raw, "gmem", required=True), number(raw, "label", required=True))
        return {key: Configuration(key, memory, int(score)) for key, memory, score in rows}

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], PairRates]:
        raw = self._table(PAIRS, tuple(f"{part}{side}" for side in "12" for part in (*PARTS, "speed")))
        first, second = keys_of(raw, "1"), keys_of(raw, "2")
        speeds = (number(raw, name, required=True).to_list() for name in ("speed1", "speed2"))
        found: dict[tuple[str, str], PairRates] = {}
        for row, (a, b, of_a, of_b) in enumerate(zip(first, second, *speeds)):
            if (a, b) in found:
                raise raw.error(f"{a} beside {b} is measured twice", row=row, field="model1", fix="remove one of the rows")
            found[a, b] = PairRates(of_a, of_b)
            found.setdefault((b, a), PairRates(of_b, of_a))
        return found

    def rates(self, guest: Configuration, host: Configuration) -> PairRates:
        """How fast the two go on the same GPUs."""
        if guest.network in _UNDISTURBED or host.network in _UNDISTURBED:
            return PairRates(1.0, 1.0)
        known = self._pairs.get((guest.key, host.key))
        if known is None:
            what = f"{guest.key} beside {host.key} is not measured"
            raise TraceError(what, file=str(self.folder / PAIRS), fix="add a row, or use the default regime, which predicts")
        return known

    def predicted(self, model: str) -> dict[str, float]:
        """Durations in seconds that a model (`ebm` or `lgb`) has predicted, by job."""
        raw = self._table(self.duration_file(model).name, ("job_id", "priority"))
        return dict(zip(text(raw, "job_id").to_list(), number(raw, "priority", required=True).to_list()))

    def duration_file(self, model: str) -> Path:
        return self.folder / f"venus_sept_{model}_duration_pred.csv"

    def expected(self, column: str) -> Floats:
        """What a model expects for every ten minutes of September: `pred_gpu_job` or `pred_gpu_num`."""
        raw = self._table("venus_sept_throughput_pred.csv", ("pred_gpu_job", "pred_gpu_num"))
        return np.asarray(number(raw, column, required=True).to_numpy())

    def _table(self, name: str, columns: tuple[str, ...]) -> RawTable:
        path = self.folder / name
        if not path.is_file():
            raise NotFoundError(f"has no file {name}", where=f"profiles {self.folder}", fix="name a folder with Lucid's files")
        return read_foreign(path, columns)


def read(folder: Path) -> LucidProfiles:
    """The profiles in a folder."""
    return LucidProfiles(folder)
