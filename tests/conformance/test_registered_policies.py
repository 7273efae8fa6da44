"""Every policy that Gantline ships keeps every rule, with its defaults and with the settings that change its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gantline.conformance import check_policy, suite
from gantline.policies.registry import policy_names

LONG = ("pollux", "adaptdl", "shockwave")
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    # gavel: tests/systems/gavel; recorded decides nothing; some search long, see below
    *((name, {}) for name in policy_names() if not name.startswith("gavel.") and name not in ("recorded", *LONG)),
    ("fifo", {"backfill": "skip"}),
    ("fifo", {"backfill": "easy"}),
    ("fifo", {"backfill": "conservative"}),
    ("las", {"service": "gpu-time"}),
    ("tiresias", {"limits": (100.0, 1000.0)}),
    ("tiresias", {"promote": 2.0}),
    ("tiresias", {"gittins": True}),
    ("adaptdl", {"size": 4, "generations": 2}),
    ("pollux", {"size": 4, "generations": 2}),  # the rules do not ask for a good answer
    ("shockwave", {"window": 4}),
]
FAMILIES = (  # relatives decide by the same code but for one function; the first is told all stories of the long run, the others share
    # them. At every change the first stands for its family here, and `test_every_policy.py` and the records take each of them
    ("srtf", "sjf", "srsf", "smallest"),
    ("drf", "drf-ext", "drf-fifo", "drf-sjf", "es", "fs"),
    ("allox.srpt", "allox.sjf"),
    ("voda.elastic_tiresias", "voda.elastic_srjf", "voda.elastic_fifo", "voda.tiresias", "voda.srjf", "voda.fifo"),
    ("afs", "equal-share"),
    ("pollux", "adaptdl"),
)
SHARES = 11  # one story each: at every change every policy goes through one; `--long` tells them all
FAULTY = 10  # stories of a faulty world; each policy lives through one, at every change a tenth of the policies through others each


def cases() -> Iterator[Any]:
    relatives = {name for family in FAMILIES for name in family[1:]}
    for name, settings in VARIANTS:
        yield pytest.param(
            name, settings, id=" ".join([name, *map(str, settings.values())]), marks=[pytest.mark.long] * (name in relatives)
        )


@pytest.mark.parametrize(("name", "settings"), [*cases()])
def test_a_policy_of_ours_keeps_every_rule(name: str, settings: dict[str, Any], long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    number = VARIANTS.index((name, settings))
    place = next((family.index(name) for family in FAMILIES if name in family), 0)
    if place or not long:
        share = suite.scenarios()[(place or number) % SHARES :: SHARES]
        monkeypatch.setattr(suite, "scenarios", lambda: share)
    turn, rest = divmod(number, FAULTY)
    monkeypatch.setattr(suite, "_FAULTY_STORIES", (rest,) if long else (turn,) if rest == 0 else ())
    report = check_policy(name, settings)
    assert report.passed, f"\n{report}"


def test_relatives_are_there_and_have_settings_that_change_nothing() -> None:
    told = [name for name, _ in VARIANTS]
    assert all(told.count(name) == 1 for family in FAMILIES for name in family)
