"""The lowest versions that pyproject.toml admits, as constraints for pip; to be asked by the lowest Python, which has wheels for them."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
python = project["requires-python"].removeprefix(">=")
mine = f"{sys.version_info.major}.{sys.version_info.minor}"
if mine != python:
    sys.exit(f"the lowest versions belong to Python {python}, and this is {mine}; try: make PYTHON=python{python} test-lowest")
wanted = [
    *project["dependencies"],
    *(one for extra in ("plot", "live", "postgresql", "test") for one in project["optional-dependencies"][extra]),
]
for requirement in wanted:
    if found := re.match(r"^([A-Za-z0-9_.-]+)(?:\[\w+\])?\s*>=\s*([0-9.]+)", requirement):
        print(f"{found[1]}=={found[2]}")
