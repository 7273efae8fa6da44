"""The past of a live scheduler folded again: from each checkpoint, what was received must give the plans that were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gantline.core.cluster_json import decode_cluster
from gantline.core.json_reader import Reader
from gantline.engine.drivers.replay_check import Check, PartedError, PlanDifference, Replayed
from gantline.live.archive import Archive
from gantline.live.launches import Launches
from gantline.live.past import Past
from gantline.live.recorded_run import RecordedRun
from gantline.live.setup import Setup, make_loop
from gantline.traces.files.python_file import GivenCode, only_given


class KeptPast(Protocol):
    """What is read of a store."""

    def checkpoints(self) -> Iterator[tuple[int, dict[str, Any]]]: ...

    def journal(self, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]: ...

    def jobs(self) -> Iterator[dict[str, Any]]: ...


@dataclass
class _Stopped:
    """A clock that is never read: each input has the time at which it was received."""

    at: float

    def now(self) -> float:
        return self.at


def replay_store(
    store: KeptPast, archive: Archive | None = None, run: RecordedRun | None = None, code: GivenCode | None = None
) -> Replayed:
    """Fold every stretch from one kept checkpoint to the next, up to the first plan that is not the recorded one.

    A service that is stopped or killed has received its last inputs and not decided yet: what the newest stretch gives beyond the last
    decision of the record is no difference. The next service makes these decisions first, and records them. Of a store that was compacted
    the record begins with its oldest checkpoint; jobs that have left it are found in the archive. A `run` is filled with what was ordered.
    Of Python code that the record names, `code` alone is loaded.
    """
    with only_given(code):
        return _replayed(store, archive, run)


def _replayed(store: KeptPast, archive: Archive | None, run: RecordedRun | None) -> Replayed:
    kept = list(store.checkpoints())
    ways, found = Launches(store.jobs(), archive), Replayed(0, before=int(kept[0][1]["snapshot"]["decision"]) if kept else 0)
    for place, (covers, saved) in enumerate(kept):
        end = kept[place + 1][0] if place + 1 < len(kept) else None
        past = Past.read((number, line) for number, line in store.journal(covers) if end is None or number <= end)
        stretch = _stretch(saved, past, ways, is_last=end is None, run=run)
        left_out = found.left_out + len(past.aside)
        found = Replayed(found.decisions + stretch.decisions, stretch.difference, stretch.open, left_out, found.before)
        if found.difference is not None:
            break
    return found


def _stretch(saved: Mapping[str, Any], past: Past, ways: Launches, *, is_last: bool, run: RecordedRun | None) -> Replayed:
    snapshot = saved["snapshot"]
    cluster = decode_cluster(Reader(snapshot, "checkpoint"))
    setup = Setup.from_json(saved["setup"])
    loop = make_loop(setup, saved, cluster, None, _Stopped(float(snapshot["now"])))
    t = loop.state.tables
    loop.inbox.able = lambda row: setup.able(ways[t.ids[row]], t.cluster)
    check = Check(past.decisions, is_open=is_last)
    loop.engine.recorder = check.decided
    if run is not None:
        run.cluster, run.profiles = run.cluster or cluster, run.profiles or setup.profiles
        run.watch(loop)
    try:
        past.fold(loop)
    except PartedError as parted:
        return Replayed(check.decisions - 1, parted.difference)
    if run is not None:
        run.enter(past.script)
    recorded = len(past.decisions)
    if check.decisions < recorded:
        left = past.decisions[check.decisions]
        return Replayed(check.decisions, PlanDifference(left["decision"], left["now"], "decision", "made", "not made"))
    return Replayed(recorded, open=check.decisions - recorded)
