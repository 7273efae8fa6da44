"""No clocks, no uncontrolled randomness and no I/O in the rooms where decisions are made."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.project.purity import CHANCE, CLOCK, IO, Violation, violations

ROOT = Path(__file__).parents[2]
PURE_ROOMS = (
    "core",
    "models",
    "policies",
    "engine",
    "systems/*/policies*",
    "systems/*/regime*.py",
)
#: parts of these rooms that keep compiled kernels, read files for a run, or move its clock
AT_THE_BORDER = ("core/machine_code/", "engine/assembly/")

# (file, name) -> why it is no danger to decisions.
EXCEPTIONS: dict[tuple[str, str], str] = {}

PLANTED = [
    (CLOCK, "import time"),
    (CLOCK, "import time as t\nnow = t.monotonic()"),
    (CLOCK, "from time import perf_counter as tick"),
    (CLOCK, "import datetime\nnow = datetime.datetime.now()"),
    (CLOCK, "from datetime import datetime as dt\nnow = dt.utcnow()"),
    (CLOCK, "import datetime as d\nday = d.date.today()"),
    (CLOCK, "import asyncio"),
    (CLOCK, "def f():\n    import time"),
    (CLOCK, "clock = __import__('time')"),
    (CLOCK, "import importlib\nclock = importlib.import_module('time')"),
    (CHANCE, "import random\nx = random.random()"),
    (CHANCE, "from random import shuffle"),
    (CHANCE, "import random\ng = random.Random()"),
    (CHANCE, "import numpy as np\nx = np.random.rand(3)"),
    (CHANCE, "from numpy import random as r\nx = r.normal()"),
    (CHANCE, "from numpy.random import randint"),
    (CHANCE, "import numpy as np\ng = np.random.default_rng()"),
    (CHANCE, "import numpy as np\nnp.random.seed(1)"),
    (CHANCE, "import secrets"),
    (CHANCE, "import uuid"),
    (CHANCE, "key = hash('v100')"),
    (IO, "text = open('jobs.csv').read()"),
    (IO, "from pathlib import Path"),
    (IO, "def f(path):\n    return path.read_text()"),
    (IO, "def f(frame):\n    frame.write_csv('x.csv')"),
    (IO, "import os\nhome = os.environ"),
    (IO, "import os.path"),
    (IO, "import socket"),
    (IO, "import subprocess"),
    (IO, "import logging"),
    (IO, "print('hello')"),
    (IO, "answer = input()"),
    (IO, "import requests"),
    (IO, "from urllib.request import urlopen"),
    (IO, "import sqlite3"),
    (IO, "import sys\nsys.stderr.write('x')"),
    (IO, "import numpy as np\nx = np.load('x.npy')"),
    (IO, "import polars as pl\nx = pl.read_csv('x.csv')"),
    (IO, "from importlib.metadata import entry_points"),
    (IO, "import json\nx = json.load(f)"),
]

ALLOWED = [
    "import math\nimport typing\nimport dataclasses\nimport struct\nimport hashlib",
    "import json\nx = json.loads('{}')",
    "from datetime import datetime, timedelta\nx = datetime.fromtimestamp(0)",
    "import numpy as np\ng = np.random.Generator(np.random.Philox(key=7))",
    "import numpy as np\ndef f(g: np.random.Generator) -> float:\n    return float(g.random())",
    "import random\ng = random.Random(7)\nx = g.random()",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pathlib import Path",
    "class A:\n    def __hash__(self) -> int:\n        return hash((1, 2))",
    "import sys\nlargest = sys.maxsize",
    "def f(snapshot):\n    return snapshot.time + snapshot.random",
    "import time_series",
]


def files_of(room: str) -> list[Path]:
    """The modules of a package, or of all that the pattern names."""
    found = sorted((ROOT / "src" / "gantline").glob(room))
    files = [file for place in found for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return [file for file in files if not file.relative_to(ROOT / "src" / "gantline").as_posix().startswith(AT_THE_BORDER)]


@cache
def in_room(room: str) -> list[Violation]:
    """What the modules of a package do that they should not."""
    return [
        violation
        for path in files_of(room)
        for violation in violations(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_a_room_of_decisions_is_pure(room: str) -> None:
    found = [str(violation) for violation in in_room(room) if (violation.file, violation.name) not in EXCEPTIONS]
    assert not found, "\n" + "\n".join(found)


def test_an_exception_that_is_no_longer_needed_is_taken_back() -> None:
    found = {(violation.file, violation.name) for room in PURE_ROOMS for violation in in_room(room)}
    assert EXCEPTIONS.keys() <= found


@pytest.mark.parametrize(("kind", "source"), PLANTED)
def test_a_planted_violation_is_found(kind: str, source: str) -> None:
    found = violations(source, "planted.py")
    assert {violation.kind for violation in found} == {kind}
    assert all(1 <= violation.line <= source.count("\n") + 1 for violation in found)


@pytest.mark.parametrize("source", ALLOWED)
def test_pure_code_is_left_alone(source: str) -> None:
    assert violations(source, "pure.py") == []


def test_a_violation_names_its_place_and_a_remedy() -> None:
    (found,) = violations("x = 1\nprint(x)\n", "src/gantline/core/jobs.py")
    assert str(found).startswith("src/gantline/core/jobs.py:2: print() does I/O; ")
    assert "return what should be written" in str(found)


def test_every_room_of_decisions_exists() -> None:
    for room in PURE_ROOMS:
        assert files_of(room), f"no module in {room}: has it been renamed?"
