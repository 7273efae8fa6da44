"""What stored code is named after: everything that the code depends on, and nothing else."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from typing import Any

import pytest

import gantline
from gantline.core.machine_code import Kernel

TEXT = '''
"""Made up."""
import math
from typing import NamedTuple
import numpy as np
from gantline.core.jit import kernel

STEP = 2
TABLE = np.array([1, 2])


class Pair(NamedTuple):
    first: int
    second: int = 0


@kernel
def deepest(at):
    """Add."""
    return at + STEP


@kernel
def middle(at):
    return deepest(at) * 3


@kernel
def top(at, other=1):
    """Do."""
    if at in (4, 5):
        return Pair(middle(at), other).first
    return math.floor(TABLE[0] + sum([x for x in (1, 2)]))


@kernel
def apart(at):
    return at
'''


def fingerprint(text: str, name: str = "top", path: str = "one.py") -> str:
    room: dict[str, Any] = {"__name__": "made_up"}
    exec(compile(text, path, "exec"), room)
    return str(room[name].fingerprint)


def test_the_place_the_lines_and_the_words_about_it_do_not_matter() -> None:
    moved = "\n\n" + TEXT.replace("Add.", "Add something.").replace("return at\n", "return at + 1\n")
    assert fingerprint(moved, path="two.py") == fingerprint(TEXT)
    assert fingerprint(moved, "apart") != fingerprint(TEXT, "apart")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("STEP = 2", "STEP = 3"),
        ("STEP = 2", "STEP = 2.0"),
        ("array([1, 2])", "array([1, 3])"),
        ("array([1, 2])", "array([1.0, 2.0])"),
        ("* 3", "* 4"),
        ("at + STEP", "at - STEP"),
        ("(4, 5)", "(4, 6)"),
        ("other=1", "other=2"),
        ("math.floor", "math.ceil"),
        ("second: int = 0", "second: int = 1"),
        ("first: int\n    second: int = 0", "second: int\n    first: int = 0"),
        ("x for x", "-x for x"),
        ("@kernel\ndef deepest", "from gantline.core.jit import compiled\n@compiled\ndef deepest"),
    ],
)
def test_whatever_the_code_depends_on_matters(before: str, after: str) -> None:
    assert before in TEXT
    assert fingerprint(TEXT.replace(before, after)) != fingerprint(TEXT)


def test_named_constants_count_where_they_are_read() -> None:
    from gantline.core.columns import Job

    text = TEXT.replace("import math", "import math\nfrom gantline.core.columns import Job").replace("return at\n", "return Job.GPUS\n")
    before = fingerprint(text, "apart")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "ARRIVAL", 77)
        assert fingerprint(text, "apart") == before
        patch.setattr(Job, "GPUS", 77)
        assert fingerprint(text, "apart") != before


def test_constants_of_our_own_modules_count_where_they_are_read() -> None:
    from gantline.core import columns

    text = TEXT.replace("import math", "import math\nfrom gantline.core import columns").replace("return at\n", "return columns.SHARED\n")
    before = fingerprint(text, "apart")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "DOWN", 77)
        assert fingerprint(text, "apart") == before
        patch.setattr(columns, "SHARED", 77)
        assert fingerprint(text, "apart") != before


def test_what_cannot_be_told_is_not_stored() -> None:
    assert fingerprint(TEXT.replace("STEP = 2", "STEP = object()")) == ""
    assert fingerprint(TEXT.replace("STEP = 2", "STEP = object()"), "apart")


def test_every_kernel_of_the_package_can_be_told() -> None:
    for room in ("core", "models", "policies", "engine", "lab.report"):
        package = importlib.import_module(f"gantline.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"gantline.{room}."):
            importlib.import_module(found.name)
    kernels = [one for one in gc.get_objects() if isinstance(one, Kernel) and one.__module__.startswith(gantline.__name__)]
    assert len(kernels) > 300
    assert [one.full_name for one in kernels if not one.fingerprint] == []
