"""Files that are embedded in a page."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

SCRIPTS = ("figures.js", "figure_reader.js", "wide_tables.js", "jobs_table.js", "script.js")
"""In the order in which a page needs them."""


def resource(name: str) -> str:
    """A file of this folder."""
    return files("gantline.lab.report.page").joinpath(name).read_text(encoding="utf-8")


def content_policy(scripts: list[str], style: str) -> str:
    """What a page may load: nothing from anywhere, of scripts and styles its own alone, by their hashes."""
    allowed = " ".join(f"'{_hash(script)}'" for script in scripts)
    return f"default-src 'none'; script-src {allowed}; style-src '{_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
