"""Facts of a run: every snapshot has them, on either clock and in files, so that nobody has to rewrite a policy before a run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.jobs import job_row

from gantline import Policy, simulate
from gantline.core.errors import UsageError
from gantline.core.facts import NO_FACTS, Costs, Facts
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot


@dataclass(frozen=True)
class Curious(Policy):
    """Starts everybody, and notes what the snapshots say."""

    keeps_reservations = True
    seen: list[tuple[Facts, list[int]]] = field(default_factory=list)

    def decide(self, snapshot: Snapshot) -> Plan:
        self.seen.append((snapshot.facts, snapshot.jobs.reserved.tolist()))
        return Plan.rank(snapshot.jobs.arrival)


def test_a_policy_reads_costs_prices_bounds_delays_and_reservations_in_its_snapshot() -> None:
    policy, jobs = Curious(), [job_row("a", type="v100", reserved="v100:1"), job_row("b", reserved="")]
    simulate(jobs, "v100:1x2", policy, costs="start=5,resize=7", min_run=60, latency=2, prices="v100=0.5")
    facts, reserved = policy.seen[0]
    assert facts == Facts(Costs(start=5.0, resize=7.0), 60.0, 2.0, {"v100": 0.5})
    assert reserved == [1, 0]


def test_facts_survive_a_file_and_files_without_them_have_none() -> None:
    told = {"cluster": "1x2", "jobs": [{"id": "a", "reserved": 2}], "min_run": 60, "latency": 2}
    told |= {"costs": {"start": 5, "switch": 0}, "prices": {"gpu": 0.25}}
    read = decode_snapshot(told)
    assert read.facts == Facts(Costs(start=5.0, switch=0.0), 60.0, 2.0, {"gpu": 0.25})
    again = decode_snapshot(json.loads(json.dumps(encode_snapshot(read))))
    assert again.facts == read.facts
    assert again.jobs.reserved.tolist() == [2]
    plain = decode_snapshot({"cluster": "1x2", "jobs": [{"id": "a"}]})
    assert plain.facts == NO_FACTS
    assert not {"costs", "prices", "min_run", "latency"} & encode_snapshot(plain).keys()


@pytest.mark.parametrize(
    ("told", "where"), [({"costs": {"begin": 3}}, "begin"), ({"costs": {"start": -1}}, "costs.start"), ({"min_run": "inf"}, "min_run")]
)
def test_facts_that_cannot_be_meant_are_refused_with_their_place(told: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError, match=where):
        decode_snapshot({"cluster": "1x1", "jobs": []} | told)


def test_facts_cannot_be_written_to() -> None:
    facts = Facts(prices={"v100": 1.0})
    with pytest.raises(TypeError):
        facts.prices["v100"] = 0.0  # type: ignore[index]
