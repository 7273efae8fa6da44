"""No two things of one name, where a reader could take one for the other: classes anywhere, functions within a room."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tests.project.sources import SOURCE, Source, sources

#: rooms with a vocabulary of their own: what runs in the user's training script, and what turns kernels into files
APART = ("train/", "core/machine_code/")

#: classes that stand twice, and why that confuses nobody
TWICE = {
    "Ending": "how a job ends in the tests of executors, and in the local runner",
    "Interval": "columns of the log, and an interval of confidence",
    "Job": "the column names of the table of jobs, and a job of a live service",
    "Log": "intervals of the engine, and lines of a job",
    "Node": "the column names of the table of nodes, and a node of a cluster",
    "Option": "the column names of the table of options, and a way to run a job",
    "Outcome": "how a loop ends, and how a run of a sweep ended",
    "Part": "a role of a plan, and of a job file, which becomes one",
    "Pool": "places of AlloX, and pools of elastic jobs",
    "Progress": "of a live job, as it is told and as its file asks for it",
    "Record": "columns of a record, and a stored run of a sweep",
    "Setup": "of a forecast, and of a service",
    "Switch": "an engine setting that is on or off, and a switch of a network",
    "Task": "one run of a sweep, and one process of the local runner",
    "Walk": "columns of what a walk notes, and a walk along links",
    "Workload": "what a measurement of coverage draws, and a Kubernetes object that is taken in",
}

#: functions that stand twice in one room, and why
SAME_ROOM = {
    "check": "commands of two groups: `experiment check`, `trace check`",
    "compare": "the same question in Python, and from a file of experiments",
    "upgrade": "one per migration, as alembic wants it",
    "read": "one per trace format, found by the registry of importers",
}


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Every file and its text."""
    files = ((file, file.relative_to(SOURCE).as_posix()) for file in sorted(SOURCE.rglob("*.py")))
    return tuple((place, file.read_text(encoding="utf-8")) for file, place in files if not place.startswith(APART))


def top_level(kind: str) -> dict[str, list[str]]:
    """Name -> the files that define it at the beginning of a line, private ones left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for place, text in texts():
        names = re.findall(rf"^(?:{kind}) ([^\W_]\w*)", text, re.MULTILINE)
        for name in dict.fromkeys(names):  # once, also where it has several signatures
            found[name].append(place)
    return found


def test_no_two_classes_have_one_name() -> None:
    twice = {name: files for name, files in top_level("class").items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in TWICE} == {}
    assert TWICE.keys() - twice.keys() == set(), "these stand once now"
    assert all(len(files) == 2 for files in twice.values())


def test_no_two_functions_of_a_room_have_one_name() -> None:
    twice = {}
    for name, files in top_level("def|async def").items():
        rooms = [file.rpartition("/")[0] for file in files]
        if len(set(rooms)) < len(rooms):
            twice[name] = files
    assert {name: files for name, files in twice.items() if name not in SAME_ROOM} == {}
    assert SAME_ROOM.keys() - twice.keys() == set(), "these stand once now"


def test_no_policy_goes_behind_its_snapshot() -> None:
    """The tables behind a snapshot hold the truth; they are for those who store, replay or check one."""
    for room in ("policies/**/*", "systems/*/policies/**/*", "systems/*/policies", "models/**/*"):
        for file in SOURCE.glob(f"{room}.py"):
            assert "tables_behind" not in file.read_text(encoding="utf-8"), file


#: metaphors that had to be explained, and what stands in their place
RETIRED = {
    "courier": "actor_sync",
    "bulletin": "runner events",
    "premises": "runner context",
    "sight": "cluster cache",
    "desk": "admission control, or what it really is",
    "parcels": "shared inputs",
    "sparing": "preemption grace",
    "stubborn": "a scenario in which all is refused",
}


def test_retired_words_name_nothing() -> None:
    """Whoever needs one of these again finds a plain noun beside it."""
    words = re.compile(rf"\b_?({'|'.join(RETIRED)})s?\b", re.IGNORECASE)
    found = {(place, word[0]) for place, text in texts() for word in words.finditer(text)}
    files = {place for place, _ in texts() if Path(place).stem in RETIRED}
    assert found | files == set()


#: names that said nothing, and what a thing of that kind is called
RETIRED_NAMES = {
    "company": "neighbours, sharers, a group",
    "roll_call": "adopt",
    "seat": "a device, a place, a count of devices",
    "seats": "devices, places, counts of devices",
    "seating": "placement",
    "story": "scenario",
    "stories": "scenarios",
    "told": "summary, message, reports",
    "Way": "Variant",
}
#: (file, name): settings of policies that users write, and a value of the vocabulary
NAMED_ELSEWHERE = {
    ("policies/sharing.py", "seats"),
    ("systems/optimus/policies/policy.py", "seats"),
}


def test_retired_names_name_no_function_class_or_variable() -> None:
    found = set()
    for place, text in texts():
        if re.search(rf"\b({'|'.join(RETIRED_NAMES)})\b", text):
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            found |= {(place, token.string) for token in tokens if token.type == tokenize.NAME and token.string in RETIRED_NAMES}
    assert found == NAMED_ELSEWHERE


# No two files of a room lean on each other, not even through one another, nor for the sake of a type.


def imports(room: str) -> dict[str, set[str]]:
    """Which files of the room each of them imports, wherever in the file, and also what only type checkers read."""
    files = {source.module: source for source in sources() if source.place.startswith(f"{room}/")}
    found: dict[str, set[str]] = {}
    for name, source in files.items():
        named = {full if (full := f"{module}.{one}") in files else module for module, one in source.imported}
        found[name] = (named & files.keys()) - {name}
    return found


ROOMS = sorted(folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file())


@pytest.mark.parametrize("room", ROOMS)
def test_imports_within_a_room_go_round_in_no_circle(room: str) -> None:
    found = imports(room)
    assert len(list(TopologicalSorter(found).static_order())) >= len(found)  # raises CycleError, which names the circle


# Runs are put together in one place: no other file of the package makes a state or an engine.

MADE = {"State", "Engine"}


def makers(root: Path) -> list[str]:
    """FILE:LINE of every call of these names."""
    found = []
    for file in sorted(root.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if not any(f"{name}(" in text for name in MADE):  # reading a tree takes a hundred times as long
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if name in MADE:
                    found.append(f"{file.relative_to(root)}:{node.lineno}")
    return found


def test_only_the_assembly_makes_states_and_engines() -> None:
    found = makers(SOURCE)
    assert {place.partition(":")[0] for place in found} == {"engine/assembly/run_rules.py"}


def test_a_planted_one_is_found(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("from gantline.engine import state\n\nmade = state.State(tables)\n")
    assert makers(tmp_path) == ["elsewhere.py:3"]


# What may only become less: values of unknown type, and functions with long lists of parameters.

#: how often files of the product name `Any` in an annotation, a cast or an alias
MOST_ANY = 1426

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
