"""Every policy that Gantline ships keeps every rule, with its defaults and with the settings that change its path."""

from __future__ import annotations

from typing import Any

import pytest

from gantline.conformance import check_policy
from gantline.policies.registry import policy_names

LONG = ("pollux", "adaptdl", "shockwave")
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    # gavel: tests/policies/gavel; recorded decides nothing; some search long, see below
    *((name, {}) for name in policy_names() if not name.startswith("gavel.") and name not in ("recorded", *LONG)),
    ("fifo", {"backfill": "skip"}),
    ("fifo", {"backfill": "easy"}),
    ("fifo", {"backfill": "conservative"}),
    ("las", {"service": "gpu-time"}),
    ("tiresias", {"limits": (100.0, 1000.0)}),
    ("tiresias", {"promote": 2.0}),
    ("tiresias", {"gittins": True}),
    ("adaptdl", {"size": 6, "generations": 3}),
    ("pollux", {"size": 6, "generations": 3}),  # the rules do not ask for a good answer
    ("shockwave", {"window": 4}),
]


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=[" ".join([n, *map(str, s.values())]) for n, s in VARIANTS])
def test_a_policy_of_ours_keeps_every_rule(name: str, settings: dict[str, Any]) -> None:
    report = check_policy(name, settings)
    assert report.passed, f"\n{report}"
