"""No two things of one name, where a reader could take one for the other: classes anywhere, functions within a room."""

from __future__ import annotations

import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

import gantline

SOURCE = Path(gantline.__file__).parent

#: rooms with a vocabulary of their own: what runs in the user's training script, and what turns kernels into files
APART = ("train/", "core/machine_code/")

#: classes that stand twice, and why that confuses nobody
TWICE = {
    "Column": "of a printed table, and of the tables of the vocabulary",
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
    "Table": "of the vocabulary, and an auction's",
    "Task": "one run of a sweep, and one process of the local runner",
    "Walk": "columns of what a walk notes, and a walk along links",
    "Workload": "what a measurement of coverage draws, and a Kubernetes object that is taken in",
}

#: functions that stand twice in one room, and why
SAME_ROOM = {
    "decode": "of JSON, and of a policy's memory",
    "encode": "of JSON, and of a policy's memory",
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
#: rooms whose vocabulary is the engine's
OF_THE_ENGINE = ("engine/", "core/", "systems/allox/")
#: (file, name): settings of policies that users write, and a value of the vocabulary
NAMED_ELSEWHERE = {
    ("policies/sharing.py", "seats"),
    ("systems/optimus/policies/policy.py", "seats"),
    ("lab/questions/what_if.py", "told"),
}


def test_retired_names_name_no_function_class_or_variable() -> None:
    found = set()
    for place, text in texts():
        if not place.startswith(OF_THE_ENGINE) and re.search(rf"\b({'|'.join(RETIRED_NAMES)})\b", text):
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            found |= {(place, token.string) for token in tokens if token.type == tokenize.NAME and token.string in RETIRED_NAMES}
    assert found == NAMED_ELSEWHERE
