"""The page of concepts lists the rooms as the import contract has them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_concepts_lists_the_rooms_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    rooms = [[room.strip() for room in re.split("[:|]", layer) if "(" not in room] for layer in layers]  # in parentheses: still to come
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    block = re.search(r"^## Rooms\n\n```text\n(.*?)\n```", page, flags=re.MULTILINE | re.DOTALL)
    assert block
    assert [line.split(", ") for line in block[1].splitlines()] == rooms


def test_every_room_stands_in_the_contract() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    folders = {folder.name for folder in (ROOT / "src" / "gantline").iterdir() if (folder / "__init__.py").is_file()}
    assert {room for room in folders if not room.startswith("_") and not re.search(rf"\b{room}\b", text)} == set()
