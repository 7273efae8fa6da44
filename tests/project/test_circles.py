"""No two files of a room lean on each other, not even through one another, nor for the sake of a type."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest
from tests.project.sources import SOURCE, sources


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
