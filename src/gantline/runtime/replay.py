"""The past of a live scheduler folded again: from each checkpoint, what was heard must give the plans that were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gantline.core.cluster_json import decode_cluster
from gantline.core.inputs import decode_input
from gantline.core.json_reader import Reader
from gantline.drivers.replay_check import Check, PartedError, PlanDifference, Replayed
from gantline.runtime.launch import Launch, slots_only
from gantline.runtime.setup import Setup, make_loop


class Past(Protocol):
    """What is read of a store."""

    def checkpoints(self) -> Iterator[tuple[int, dict[str, Any]]]: ...

    def journal(self, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]: ...

    def jobs(self) -> Iterator[dict[str, Any]]: ...


@dataclass
class _Stopped:
    """A clock that nobody looks at: what was heard says when."""

    at: float

    def now(self) -> float:
        return self.at


def replay_store(store: Past) -> Replayed:
    """Fold every stretch from one kept checkpoint to the next, up to the first plan that is not the recorded one."""
    kept, decisions = list(store.checkpoints()), 0
    ways = {str(job["id"]): Launch.from_json(job["launch"]) for job in store.jobs()}
    for place, (covers, saved) in enumerate(kept):
        end = kept[place + 1][0] if place + 1 < len(kept) else None
        found = _stretch(saved, (line for number, line in store.journal(covers) if end is None or number <= end), ways)
        decisions += found.decisions
        if found.difference is not None:
            return Replayed(decisions, found.difference)
    return Replayed(decisions)


def _stretch(saved: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], ways: Mapping[str, Launch]) -> Replayed:
    script, expected = [], []
    for line in lines:
        if "input" in line:
            told = {key: line[key] for key in line if key not in ("heard", "after")}
            script.append((float(line["heard"]), decode_input(told)))
        else:
            expected.append(dict(line))
    snapshot = saved["snapshot"]
    cluster = decode_cluster(Reader(snapshot, "checkpoint"))
    loop = make_loop(Setup.from_json(saved["setup"]), saved, cluster, None, _Stopped(float(snapshot["now"])))
    t = loop.state.tables
    loop.postbox.able = lambda row: ways[t.ids[row]].can(slots_only(t.cluster))
    check = Check(expected)
    loop.engine.recorder = check.decided
    try:
        loop.fold(script)
    except PartedError as parted:
        return Replayed(check.decisions - 1, parted.difference)
    if check.decisions < len(expected):
        left = expected[check.decisions]
        return Replayed(check.decisions, PlanDifference(left["decision"], left["now"], "decision", "made", "not made"))
    return Replayed(check.decisions)
