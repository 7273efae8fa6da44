"""A matching carried from event to event equals one made from nothing, whatever happened between."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.allox.from_scratch import match_from_scratch
from tests.systems.allox.in_seconds import match

from gantline.core.memory import decode, encode
from gantline.systems.allox.policies.matching import State

TYPES = 3
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "leave", "free", "busy", "wait"]),
        st.integers(0, 10**6),
        st.lists(st.integers(1, 12), min_size=TYPES, max_size=TYPES),
    ),
    min_size=1,
    max_size=14,
)


class Cluster:
    """Waiting jobs and machines under a stream of events."""

    def __init__(self, kinds: list[int]) -> None:
        self.now = 0.0
        self.kinds = np.array(kinds)
        self.free_at = np.zeros(len(kinds))
        self.jobs: dict[int, list[float]] = {}
        self.next_id = 0

    def happen(self, what: str, which: int, times: list[int]) -> None:
        if what == "arrive":
            self.jobs[self.next_id] = [float(time) for time in times]
            self.next_id += 1
        elif what == "leave" and self.jobs:
            del self.jobs[sorted(self.jobs)[which % len(self.jobs)]]
        elif what == "free":
            self.free_at[which % len(self.kinds)] = self.now
        elif what == "busy":
            self.free_at[which % len(self.kinds)] = self.now + times[0]
        elif what == "wait":
            self.now += times[0] / 2

    def instance(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        times = np.array([self.jobs[j] for j in sorted(self.jobs)]).reshape(-1, TYPES)
        return times, self.kinds, np.maximum(self.free_at, self.now)

    def names(self) -> np.ndarray:
        return np.array(sorted(self.jobs), dtype=np.int64)


@given(EVENTS, st.permutations([0, 0, 1, 2, 2]))
def test_carried_over_equals_made_from_nothing(events: list[tuple[str, int, list[int]]], kinds: list[int]) -> None:
    cluster = Cluster(kinds)
    state: State | None = None
    for event in events:
        cluster.happen(*event)
        times, machine_type, release = cluster.instance()
        carried, state = match(times, machine_type, release, jobs=cluster.names(), state=state)
        fresh, _ = match(times, machine_type, release)
        assert carried.machine.tolist() == fresh.machine.tolist()
        assert carried.position.tolist() == fresh.position.tolist()
        assert carried.begin.tolist() == fresh.begin.tolist()
        if len(times):
            assert carried.total == pytest.approx(match_from_scratch(times, machine_type, release)[0])


def test_little_is_repaired_when_little_changed() -> None:
    rng = np.random.default_rng(0)
    kinds, release = rng.integers(0, 4, 200), rng.exponential(3600.0, 200)
    times = rng.lognormal(8.0, 1.0, (100, 4))
    fresh, state = match(times, kinds, release)
    same, _ = match(times, kinds, release, state=state)
    less, _ = match(times[1:], kinds, release, jobs=np.arange(1, 100), state=state)
    assert fresh.repairs > 50
    assert same.repairs <= 2
    assert less.repairs <= 3


def test_the_state_survives_being_written_down() -> None:
    rng = np.random.default_rng(1)
    kinds, release, times = rng.integers(0, 2, 6), rng.exponential(30.0, 6), rng.uniform(1, 50, (9, 2))
    first, state = match(times, kinds, release)
    again, _ = match(times, kinds, release, state=decode(encode(state)))
    assert again.machine.tolist() == first.machine.tolist()
    assert again.repairs <= 2
