"""What Lucid's simulator (ASPLOS 2023) reads: logs, and beside them measurements and the predictions of its models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, TraceError
from gantline.models.sharing.pair_table import configuration_key
from gantline.traces.files.speeds import ALONE, PAIRS, PARTS, keys_of
from gantline.traces.importers.table import Sieve, moment, number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace

# Logs of Lucid's simulator (ASPLOS 2023): ``job_id,user,vc,gpu_num,submit_time,duration,model,dataset,batchsize,amp,gmem,...``.
#
# The clock of the original is kept: zero is the first submission of a GPU job on or after 1 April 2020, and only what is submitted from
# second 13,219,200 (1 September) to second 15,465,540 (26 September, 23:59) is simulated. What a job trains (network, data set, batch size
# and precision) is one key, the trace's `model`; it names rows of tables of pairs.


FIRST, LAST = 13_219_200, 15_465_540
"""What is simulated, in seconds after zero; both ends belong to it."""
_FROM = 1_585_699_200.0  # 2020-04-01, in seconds since 1970
_MB_PER_GB = 1024.0
_NUMBERS = {"cpu_num": "cpus", "batchsize": "batch_size", "amp": "amp", "speed": "speed"}
_MEASURED = ("gpu_util", "gmem_util", "gmem")


def read(src: Path, *, vcs: Annotated[str, "leave out jobs of virtual clusters that this file (name,nodes) does not list"] = "") -> Trace:
    """The jobs of a Lucid log in the order of submission, on the original's clock."""
    raw = read_foreign(src, ("job_id", "vc", "gpu_num", "submit_time", "duration"))
    here = raw.frame.columns
    columns = {
        "job": text(raw, "job_id"),
        "arrival": moment(raw, "submit_time"),
        "gpus": number(raw, "gpu_num", required=True),
        "duration": number(raw, "duration", required=True),
        "queue": text(raw, "vc"),
        "model": pl.Series(_configurations(raw), dtype=pl.String),
    }
    columns |= {ours: text(raw, theirs) for theirs, ours in (("user", "user"), ("jobname", "app")) if theirs in here}
    columns |= {ours: number(raw, theirs) for theirs, ours in _NUMBERS.items() if theirs in here}
    columns |= {name: number(raw, name) for name in _MEASURED if name in here}
    if "gmem" in columns:
        columns["device_memory"] = columns["gmem"] / _MB_PER_GB
    sieve = Sieve(pl.DataFrame(columns), raw)
    sieve.drop(pl.col("arrival").is_null(), "no time of submission")
    sieve.drop(pl.col("gpus") <= 0, "no GPUs")
    if vcs:
        sieve.drop(~pl.col("queue").is_in(_listed(Path(vcs))), f"of virtual clusters that are not in {vcs}")
    sieve.drop(pl.col("arrival") < _FROM, "submitted before April 2020")
    sieve.frame = sieve.frame.with_columns(pl.col("arrival") - pl.col("arrival").min())
    sieve.drop((pl.col("arrival") < FIRST) | (pl.col("arrival") > LAST), f"not submitted from second {FIRST} to second {LAST}")
    return sieve.finish(from_zero=False)


def _configurations(raw: RawTable) -> list[str]:
    """What each job trains, as one key; empty where the log does not say."""
    if "model" not in raw.frame.columns:
        return [""] * len(raw.frame)
    columns = (text(raw, name).to_list() for name in ("model", "dataset", "batchsize", "amp"))
    return [configuration_key(*cells) if cells[0] else "" for cells in zip(*columns)]


def _listed(path: Path) -> list[str]:
    raw = read_foreign(path, ("num",))
    return [name for name in text(raw, raw.frame.columns[0]).to_list() if name]


# What Lucid's simulator reads beside the log: configurations measured alone and in pairs, and the predictions of its models.
#
# The folder holds ``single_data.csv``, ``colocate_info.csv``, ``venus_sept_ebm_duration_pred.csv`` (lucid), the same with ``lgb``
# (qssf) and ``venus_sept_throughput_pred.csv``. Each is read when a policy asks for it.

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


def read_profiles(folder: Path) -> LucidProfiles:
    """The profiles in a folder."""
    return LucidProfiles(folder)
