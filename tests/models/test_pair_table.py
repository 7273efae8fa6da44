"""Tables of measured pairs: what they say, what they estimate, and the contradictions that are refused."""

from __future__ import annotations

from math import nan
from pathlib import Path

import numpy as np
import pytest

from gantline.core.errors import GantlineError
from gantline.models.sharing.pair_model import SCORE_NAMES, PairModel
from gantline.models.sharing.pair_table import AloneProfile, PairRow, PairTable, configuration_key
from gantline.simulator.simulate import simulate
from gantline.traces.files.speeds import read_pair_profiles


def table(*rows: tuple[str, float, str, float]) -> PairTable:
    return PairTable.of([PairRow(*row, line) for line, row in enumerate(rows, start=2)], "pairs.csv")


def test_a_row_gives_both_speeds_whatever_its_order() -> None:
    found = table(("a", 0.9, "b", 0.7))

    assert PairModel(found, {}).speed("a", "b") == 0.9
    assert PairModel(found, {}).speed("b", "a") == 0.7


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ((("a", 0.9, "b", 0.8), ("b", 0.8, "a", 0.85)), "pairs.csv:3: a beside b has speed 0.85 here and 0.9 in line 2"),
        ((("a", 0.9, "b", 0.8), ("a", 0.9, "c", nan)), "pairs.csv:3: a is measured beside c, but not c beside a"),
        ((("a", 0.9, "a", 0.6),), "pairs.csv:2: a beside itself has the speeds 0.9 and 0.6"),
        ((("a", 0.9, "b", 0.0),), "b beside a has speed 0"),
    ],
)
def test_a_table_that_disagrees_with_itself_is_refused_with_the_line(rows: tuple[tuple[str, float, str, float], ...], what: str) -> None:
    with pytest.raises(GantlineError, match=what):
        table(*rows)


def test_rows_that_say_the_same_twice_agree() -> None:
    assert table(("a", 0.9, "b", 0.8), ("b", 0.8, "a", 0.9)).names == ("a", "b")


def test_two_runs_of_a_configuration_beside_itself_count_by_their_mean() -> None:
    assert PairModel(table(("a", 0.9, "a", 0.8)), {}).speed("a", "a") == pytest.approx(0.85)


def test_a_pair_that_was_not_measured_is_estimated_from_the_others() -> None:
    """Speeds that are a product of what one feels and what the other does, with one pair left out, come back."""
    feels, does = {"a": 1.0, "b": 0.9, "c": 0.8, "d": 0.7}, {"a": 1.0, "b": 0.95, "c": 0.85, "d": 0.75}
    names = list(feels)
    pairs = [(own, other) for place, own in enumerate(names) for other in names[place:] if (own, other) != ("b", "d")]
    found = table(*((own, feels[own] * does[other], other, feels[other] * does[own]) for own, other in pairs))

    assert PairModel(found, {}).speed("b", "d") == pytest.approx(feels["b"] * does["d"], abs=0.03)
    assert PairModel(found, {}).speed("d", "b") == pytest.approx(feels["d"] * does["b"], abs=0.03)


def test_the_nearest_configuration_stands_in_for_one_that_is_in_no_pair() -> None:
    alone = {"a": AloneProfile(0, 10, 5, 1000), "b": AloneProfile(0, 95, 60, 9000), "new": AloneProfile(0, 90, 55, 8500)}
    model = PairModel(table(("a", 0.99, "b", 0.97), ("b", 0.6, "b", 0.6), ("a", 1.0, "a", 1.0)), alone)

    assert model.speed("new", "b") == 0.6
    assert model.speed("stranger", "b") is None


def test_scores_follow_mean_speeds_and_a_tree_scores_what_was_never_paired() -> None:
    speeds = {"tiny1": 0.99, "tiny2": 0.98, "jumbo1": 0.6, "jumbo2": 0.62}
    rows = [(own, speeds[own], other, speeds[other]) for place, own in enumerate(speeds) for other in list(speeds)[place + 1 :]]
    alone = {name: AloneProfile(0, 12 if "tiny" in name else 96, 10, 2000) for name in speeds}
    model = PairModel(table(*rows), {**alone, "busy": AloneProfile(0, 90, 10, 2000), "calm": AloneProfile(0, 9, 10, 2000)})

    assert [model.sharing_score(name) for name in ("tiny1", "jumbo1", "calm", "busy", "stranger")] == [0, 2, 0, 2, 2]
    assert model.tree.lines(SCORE_NAMES) == ["gpu_util <= 54", "  tiny (2)", "gpu_util > 54", "  jumbo (2)"]


def test_keys_are_the_same_however_numbers_are_written() -> None:
    assert configuration_key("Wren", "Birds", "32.0", "1.0") == configuration_key("Wren", "Birds", "32", "1") == "Wren/Birds/32/amp"


def test_the_made_up_table_has_pairs_that_were_not_measured_and_all_three_scores() -> None:
    found = read_pair_profiles()

    assert np.isnan(found.pairs.measured).any()
    assert set(found.pairs.scores) == {0, 1, 2}
    assert set(found.alone) == set(found.pairs.names)


def test_a_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GantlineError, match=r"has no file colocate_info\.csv"):
        read_pair_profiles(tmp_path)


def test_jobs_that_do_not_say_what_they_train_are_refused() -> None:
    with pytest.raises(GantlineError, match="needs to know what jobs train"):
        simulate([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 9.0}], "1x1", "fifo", performance="pairs")
