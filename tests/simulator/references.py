"""Where the reference numbers of the original systems are, if they are beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"


def reference(name: str) -> Path:
    """A file or folder of reference data; the test is skipped where there is none."""
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"no reference data beside the checkout (shared/reference/{name})")
    return path
