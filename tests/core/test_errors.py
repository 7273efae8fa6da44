"""Errors that list names list all of them, and read well."""

from __future__ import annotations

from gantline.core.errors import listed, near
from gantline.policies.registry import policy_names


def test_a_close_name_is_proposed() -> None:
    assert near("srft", ["fifo", "srtf", "las"]) == "did you mean 'srtf'?"


def test_without_one_all_names_are_listed_those_of_a_family_together() -> None:
    assert (
        near("zzz", ["fifo", "gavel.fifo", "gavel.allox", "srtf", "optimus.drf"]) == "known: fifo, gavel.{allox, fifo}, optimus.drf, srtf"
    )
    assert listed(["allox", "allox.sjf", "allox.plus"]) == "allox, allox.{plus, sjf}"
    assert listed([]) == ""


def test_no_policy_is_left_out() -> None:
    told = near("0000", policy_names()).replace("{", ", ").replace("}", "")
    words = {word for part in told.split(", ") for word in part.split()}
    assert all(name in words or name.partition(".")[2] in words for name in policy_names())


def test_of_thousands_of_jobs_the_rest_are_counted() -> None:
    told = near("zzz", map(str, range(100_000)))
    assert told.endswith(" and 99,800 more")
