"""Nothing of others is replaced: no private name of a library or of Python is read, patched or imitated."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.project.foreign import foreign_acts

ROOT = Path(__file__).parents[2]

#: file and words -> why there is no other way; at most three
EXCEPTIONS = {
    (
        "src/gantline/traces/files/python_file.py",
        "changes sys.modules",
    ): "Python's manual loads a file so; dataclasses look their module up by name",
    (
        "src/gantline/live/runners/ray/packages.py",
        "ray._private.",
    ): "Ray packs a job's folder for a driver that is there; no public function packs it for later",
}

PLANTED = [
    ("import dataclasses\ndataclasses._create_fn = print", "reads dataclasses._create_fn"),
    ("import numba.core.caching as c\nx = c._Cache", "reads numba.core.caching._Cache"),
    ("from numba.core.caching import _Cache", "imports numba.core.caching._Cache"),
    ("from scipy.special._ufuncs import ndtr", "imports scipy.special._ufuncs.ndtr"),
    ("import scipy.special._ufuncs", "imports scipy.special._ufuncs"),
    ("import sys\nsys.stdout = None", "replaces sys.stdout"),
    ("from json import JSONEncoder\nJSONEncoder.default = print", "replaces json.JSONEncoder.default"),
    ("import numpy as np\nnp.random.seed += 1", "replaces numpy.random.seed"),
    ("import numpy as np\ndel np.random.seed", "replaces numpy.random.seed"),
    ("import polars\nsetattr(polars, 'name', 1)", "replaces an attribute of polars"),
    ("import atexit\ngetattr(atexit, '_clear')()", "reads atexit._clear"),
    ("def f():\n    import threading\n    threading._shutdown()", "reads threading._shutdown"),
    ("import sys\nsys.modules['polars'] = object()", "changes sys.modules"),
    ("import sys\ndel sys.modules['polars']", "changes sys.modules"),
    ("import sys\nsys.modules.update(polars=1)", "changes sys.modules"),
    ("import ctypes\nx = Loops.from_address(id(f))", "reads memory by its address"),
]

ALLOWED = [
    "import os\nos._exit(0)\nos.environ['A'] = '1'",
    "import sys\nsys.path[:] = ['a']\nsys.argv[:] = ['b']\nx = sys.modules['__main__']",
    "from gantline._alarm import paused\nfrom gantline.core.machine_code import Kernel\nKernel._call = None",
    "class A:\n    def f(self):\n        self._x = 1",
    "import numpy as np\nx = np.__version__",
    "from __future__ import annotations",
]


def sources() -> list[Path]:
    """All that is shipped, what tests are run with, and what is run before a change lands."""
    conftests = [*(ROOT / "tests").rglob("conftest.py")]
    return sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / ".ci").rglob("*.py"), *conftests])


def acts() -> dict[tuple[str, str], int]:
    found = {}
    for path in sources():
        for line, words in foreign_acts(path.read_text(encoding="utf-8")):
            found[path.relative_to(ROOT).as_posix(), words] = line
    return found


def test_nothing_of_others_is_replaced_and_every_exception_is_needed() -> None:
    found = acts()
    assert len(EXCEPTIONS) <= 3
    assert all(EXCEPTIONS.values())
    excused = {one: act for act in found for one in EXCEPTIONS if one[0] == act[0] and one[1] in act[1]}
    assert [f"{file}:{line} {words}" for (file, words), line in found.items() if not _is_excused(file, words)] == []
    assert EXCEPTIONS.keys() == excused.keys()


def _is_excused(file: str, words: str) -> bool:
    return any(file == where and told in words for where, told in EXCEPTIONS)


@pytest.mark.parametrize(("source", "words"), PLANTED)
def test_a_planted_violation_is_found(source: str, words: str) -> None:
    assert words in [told for _, told in foreign_acts(source)]


@pytest.mark.parametrize("source", ALLOWED)
def test_what_others_offer_is_left_alone(source: str) -> None:
    assert foreign_acts(source) == []
