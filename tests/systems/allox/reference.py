"""Where the numbers of the original systems lie; tests skip with a clear message when they are not there."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[4] / "shared" / "reference" / "voda-allox"


def path(name: str) -> Path:
    """The reference file of that name, or a skipped test."""
    file = FOLDER / name
    if not file.exists():
        pytest.skip(f"no reference data beside the checkout (shared/reference/voda-allox/{name})")
    return file


def rows(name: str) -> list[dict[str, str]]:
    with path(name).open() as file:
        return list(csv.DictReader(file))
