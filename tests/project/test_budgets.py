"""What may only become less: values of unknown type, and functions with long lists of parameters."""

from __future__ import annotations

from tests.project.sources import Source, sources

#: how often files of the product name `Any` in an annotation, a cast or an alias
MOST_ANY = 1542

MOST_PARAMETERS = 10

#: functions with more parameters than that, most of them keywords that a caller leaves out
LONG_LISTS: dict[str, int] = {
    "cli/advise.py advise": 11,
    "cli/live/get.py jobs": 12,
    "cli/live/submit.py submit": 24,
    "cli/live/up.py up": 30,
    "cli/experiments.py sweep": 11,
    "cli/profile.py run_profile": 15,
    "cli/simulate.py simulate": 14,
    "cli/tune.py tune": 13,
    "lab/experiment/api.py tune": 12,
    "lab/experiment/tuning/tune.py tune_settings": 11,
    "policies/elastic/layouts.py _name": 11,
    "lab/report/figures/gantt.py _cover": 11,
    "lab/report/figures/gantt.py draw_intervals": 11,
    "live/service/routes/jobs.py list_jobs": 14,
    "simulator/rollout.py rollout": 13,
    "systems/gavel/policies/instance.py of": 13,
}


def long_lists() -> dict[str, int]:
    """`file function` -> its parameters, where these are too many."""
    return {f"{source.place} {name}": count for source in sources() for name, count in source.parameters if count > MOST_PARAMETERS}


def test_any_is_not_named_more_often() -> None:
    counted = sum(source.any_named for source in sources())
    assert counted <= MOST_ANY, "give these a type"
    assert counted > MOST_ANY - 50, "lower this number"


def test_functions_take_bundles_and_no_long_lists() -> None:
    counted = long_lists()
    assert {name: count for name, count in counted.items() if count > LONG_LISTS.get(name, MOST_PARAMETERS)} == {}, "bundle these"
    assert {name: counted.get(name, 0) for name in LONG_LISTS if counted.get(name, 0) < LONG_LISTS[name]} == {}, "lower these numbers"


def test_what_is_counted() -> None:
    found = Source.of("f.py", "from typing import Any\ndef f(self, a: Any, b: dict[str, list[Any]], *, c=0) -> None: ...")
    assert found.any_named == 2
    assert found.parameters == (("f", 3),)
    assert Source.of("g.py", "import typing\n@made(typing.Any)\n@\\\nmade(\n Any)\nclass A:\n  'Any'  # Any\n  f = 1").any_named == 2
