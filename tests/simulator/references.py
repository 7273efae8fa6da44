"""Where the reference numbers of the original systems are, if they are beside the checkout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"


def reference(name: str) -> Path:
    """A file or folder of reference data; the test is skipped where there is none."""
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"no reference data beside the checkout (shared/reference/{name})")
    return path


def one_in(step: int, runs: Iterable[Any]) -> list[Any]:
    """Of the many like runs of an original, the first of every so many; `make test-long` and `make records` compare the others too."""
    cases = [run if isinstance(run, tuple) else (run,) for run in runs]
    return [pytest.param(*case, marks=[pytest.mark.long] * (at % step > 0)) for at, case in enumerate(cases)]
