"""Shares become turns: whoever has received least of its share is next, and over time everybody gets it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gantline.policies.turns import NO_TURN, Ledger, next_turns, tasks_of

ROUND = 360.0


class Machine:
    """A cluster of one type (or several) on which turns are taken, round after round."""

    def __init__(self, share: list[list[float]], devices: list[int], scale: list[int] | None = None) -> None:
        self.scale = np.array(scale or [1] * len(share))
        self.jobs = [str(i) for i in range(len(share))]
        self.devices = np.array(devices)
        self.service = np.zeros(len(share))
        self.ledger = Ledger.empty(len(devices)).updated(self.jobs, self.scale, self.service, False, ROUND)
        self.ledger = self.ledger.renewed(np.array(share), np.zeros((0, len(devices))), 0.0, ROUND)

    def turn(self, *, strict: bool = False, wasteful: bool = False) -> list[int]:
        """The type of every job's turn; who has one runs for a round."""
        speed = np.ones((len(self.jobs), len(self.devices)))
        nobody = np.zeros(len(self.jobs), dtype=bool)
        order = np.arange(len(self.devices))
        given = next_turns(self.ledger, speed, self.scale, order, self.devices, nobody, strict=strict, wasteful=wasteful)
        self.ledger = replace(self.ledger, turn=given.turn)
        self.service = self.service + ROUND * (given.turn >= 0)
        self.ledger = self.ledger.credited(self.jobs, self.service)
        self.ledger = self.ledger.updated(self.jobs, self.scale, self.service, False, ROUND)
        return [int(turn) for turn in given.turn]


def test_three_quarters_of_the_time_are_three_turns_of_four() -> None:
    machine = Machine([[0.75], [0.25]], [1])
    turns = np.array([machine.turn() for _ in range(40)])
    assert (turns[:, 0] == 0).sum() == 30
    assert (turns[:, 1] == 0).sum() == 10


def test_devices_that_no_share_wants_are_used_all_the_same() -> None:
    assert Machine([[1.0], [0.0]], [2]).turn() == [0, 0]
    assert Machine([[1.0], [0.0]], [2]).turn(strict=True) == [0, NO_TURN]


def test_a_gang_that_does_not_fit_is_passed_by_a_smaller_one() -> None:
    assert Machine([[0.9], [0.8], [0.1]], [3], scale=[2, 2, 1]).turn() == [0, NO_TURN, 0]


def test_a_newcomer_holds_a_place_in_vain_only_if_the_artifact_is_imitated() -> None:
    for wasteful, expected in ((False, [0, 0]), (True, [0, NO_TURN])):
        machine = Machine([[1.0]], [2])
        machine.jobs, machine.scale = ["0", "new"], np.array([1, 1])
        machine.service = np.zeros(2)
        machine.ledger = machine.ledger.updated(machine.jobs, machine.scale, machine.service, False, ROUND)
        assert machine.ledger.stale
        assert machine.turn(wasteful=wasteful) == expected


def test_pairs_stand_behind_the_later_of_their_jobs_and_join_equal_gangs_only() -> None:
    first, second = tasks_of(np.array([1, 2, 1, 1]), True)
    assert list(zip(first.tolist(), second.tolist())) == [(0, -1), (1, -1), (2, -1), (0, 2), (3, -1), (0, 3), (2, 3)]


def test_who_is_left_of_a_pair_goes_on_alone() -> None:
    service = np.zeros(2)
    ledger = Ledger.empty(1).updated(["a", "b"], np.array([1, 1]), service, True, ROUND)
    ledger = ledger.renewed(np.zeros((2, 1)), np.array([[1.0]]), 0.0, ROUND)
    given = next_turns(
        ledger, np.ones((3, 1)), np.array([1, 1]), np.array([0]), np.array([1]), np.zeros(2, dtype=bool), strict=False, wasteful=False
    )
    assert given.turn.tolist() == [NO_TURN, NO_TURN, 0]
    ledger = replace(ledger, turn=given.turn).updated(["b"], np.array([1]), np.array([100.0]), True, ROUND)
    assert ledger.turn.tolist() == [0]
