"""The log of a run: one row per interval in which a gang held its devices, streamed into growing columns by the kernels."""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.constants import Constants


class Interval(Constants):
    """Columns of the log: integers (LI) and floats (LF)."""

    ROW: Final = 0  # job
    OPTION: Final = 1
    REASON: Final = 2  # why it ended
    OFFSET: Final = 3  # its devices are LD[offset : offset + count]
    COUNT: Final = 4
    NODE: Final = 5  # node of a grant without devices
    START: Final = 0
    END: Final = 1


INTERVAL_INTS: Final = 6
INTERVAL_FLOATS: Final = 2


class LogSize(Constants):
    """How much has been written (LN)."""

    INTERVALS: Final = 0
    DEVICES: Final = 1


class LogColumns(NamedTuple):
    """The log as kernels take it."""

    entry: Ints32  # (Interval.ROW .. Interval.NODE, interval)
    time: Floats  # (Interval.START and Interval.END, interval)
    device: Ints32  # devices of all intervals, one after the other
    written: Ints  # INTERVALS, DEVICES


class Log:
    """Growing columns; kernels append, `reserve` makes room before they run."""

    __slots__ = ("LD", "LF", "LI", "LN", "_columns")

    def __init__(self, intervals: int = 1024, devices: int = 4096) -> None:
        self.LI = np.empty((INTERVAL_INTS, intervals), dtype=np.int32)
        self.LF = np.empty((INTERVAL_FLOATS, intervals))
        self.LD = np.empty(devices, dtype=np.int32)
        self.LN = np.zeros(2, dtype=np.int64)  # intervals, devices written
        self._columns: LogColumns | None = None

    def reserve(self, intervals: int, devices: int) -> None:
        """Room for so many more intervals and devices."""
        have = self.LI.shape[1]
        if self.LN[0] + intervals > have:
            size = int(max(have * 2, self.LN[0] + intervals))
            self.LI = _grown(self.LI, size, self.intervals)
            self.LF = _grown(self.LF, size, self.intervals)
        if self.LN[1] + devices > len(self.LD):
            grown = np.empty(int(max(len(self.LD) * 2, self.LN[1] + devices)), dtype=np.int32)
            grown[: self.LN[1]] = self.LD[: self.LN[1]]
            self.LD = grown

    @property
    def columns(self) -> LogColumns:
        """What kernels write to; another one after the log has grown."""
        known = self._columns
        if known is None or known.entry is not self.LI or known.device is not self.LD:
            known = self._columns = LogColumns(self.LI, self.LF, self.LD, self.LN)
        return known

    def never_held(self, interval: int) -> None:
        """A grant that was withdrawn before it went out: it has no length and no devices, which others were still on."""
        self.LF[Interval.START, interval] = self.LF[Interval.END, interval]
        self.LI[Interval.COUNT, interval], self.LI[Interval.NODE, interval] = 0, -1

    def leave_out_never_held(self) -> None:
        """Take such grants out when the run is over, and no row names its interval any more."""
        n = self.intervals
        LI, LF = self.LI[:, :n], self.LF[:, :n]
        held = (LI[Interval.COUNT] > 0) | (LI[Interval.NODE] >= 0) | (LF[Interval.START] != LF[Interval.END])
        if not held.all():
            self.LN[LogSize.INTERVALS] = count = int(held.sum())
            self.LI[:, :count], self.LF[:, :count] = LI[:, held], LF[:, held]

    @property
    def intervals(self) -> int:
        return int(self.LN[0])

    def hash(self) -> str:
        """A hash over everything that happened; equal runs have equal hashes."""
        digest = hashlib.blake2b(digest_size=16)
        n, d = int(self.LN[0]), int(self.LN[1])
        for part in (*self.LI[:, :n], *self.LF[:, :n], self.LD[:d]):  # column by column: nothing is copied
            digest.update(part)
        return digest.hexdigest()


def _grown(matrix: Any, size: int, used: int) -> Any:
    grown = np.empty((matrix.shape[0], size), dtype=matrix.dtype)
    grown[:, :used] = matrix[:, :used]
    return grown
