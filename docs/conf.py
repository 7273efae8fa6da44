"""Sphinx configuration: Markdown pages, the command line and the Python reference written from the code."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import fastapi  # noqa: F401  here, because autodoc imports with TYPE_CHECKING set, which this library does not survive

here = Path(__file__).parent
sys.path.insert(0, str(here / "_ext"))

with (here.parent / "pyproject.toml").open("rb") as file:
    _project = tomllib.load(file)["project"]

project = "Gantline"
author = "The Gantline authors"
project_copyright = "The Gantline authors, Apache-2.0"
release = version = _project["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "cli_reference",
    "column_reference",
]
exclude_patterns = ["_build", "_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "ignore-module-all": True,  # a name is described where it is defined, not where it is offered again
}
autodoc_mock_imports = ["ray", "torch"]  # nobody has to have it
autodoc_typehints = "signature"
toc_object_entries = False  # every page repeats the contents; with each function in them a build takes ten times as long
suppress_warnings = ["ref.python"]  # two rooms may use the same short name; both targets are right

html_theme = "furo"
html_title = f"Gantline {release}"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
