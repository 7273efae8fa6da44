"""The lowest versions that pyproject.toml admits, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
wanted = [
    *project["dependencies"],
    *(one for extra in ("plot", "live", "postgresql", "test") for one in project["optional-dependencies"][extra]),
]
for requirement in wanted:
    if found := re.match(r"^([A-Za-z0-9_.-]+)(?:\[\w+\])?\s*>=\s*([0-9.]+)", requirement):
        version = found[2]
        print(f"{found[1]}=={version}.*" if version.count(".") < 2 else f"{found[1]}=={version}")
