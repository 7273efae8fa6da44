"""The conformance suite for placement rules: ours keep all of it, and a rule that breaks one is found with the example."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gantline.lab.conformance import check_placement
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest
from gantline.policies.placement.rules import Together, find_placement, own_rules


@pytest.mark.parametrize("name", own_rules())
def test_our_rules_keep_all_of_it(name: str) -> None:
    report = check_placement(name, worlds=15)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("name", "lie", "broken"),
    [
        ("skew", {"monotone": True}, "monotone"),
        ("first-free", {"one_node": True}, "one_node"),
        ("first-free", {"together": Together.ALWAYS}, "together"),
        ("consolidated", {"counts": True}, "counts"),
    ],
)
def test_a_rule_that_declares_what_is_not_so_is_found(name: str, lie: dict[str, object], broken: str) -> None:
    report = check_placement(replace(find_placement(name), **lie), worlds=50)  # type: ignore[arg-type]
    assert [one.rule for one in report.broken] == [broken]
    assert "a gang of" in report.broken[0].message
    assert "free of each node" in report.broken[0].message


class First(DeviceRule):
    together = True

    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        return list(free.devices)[: gang.gpus]


class Drawn(DeviceRule):
    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        return random.sample(list(free.devices), gang.gpus)


class Short(DeviceRule):
    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        return list(free.devices)[1 : gang.gpus]


class Foreign(DeviceRule):
    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        return list(range(gang.gpus))


class Absent(DeviceRule):
    pass


@pytest.mark.parametrize(
    ("rule", "broken"),
    [(First(), {"together"}), (Drawn(), {"deterministic", "purity"}), (Short(), {"whole"}), (Foreign(), {"free"}), (Absent(), {"answers"})],
)
def test_a_rule_of_a_user_that_breaks_one_is_found(rule: DeviceRule, broken: set[str]) -> None:
    report = check_placement(rule, worlds=50)
    assert {one.rule for one in report.broken} == broken
    assert not report.passed


def test_what_was_not_looked_at_is_not_called_kept() -> None:
    results = {one.rule: one.result for one in check_placement(Absent(), worlds=20).findings}
    assert results["answers"] == "FAILED"
    assert set(results.values()) == {"FAILED", "unseen"}
