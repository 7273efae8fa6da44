"""The version, the licence and the changelog say the same wherever they are written."""

from __future__ import annotations

import hashlib
import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

import gantline

ROOT = Path(__file__).parents[2]

# SHA-256 of the words of the standard text, spaces and line breaks evened out.
APACHE_2_0 = "0ffddef9e48f8a09aed5caf2d44f7ba1c1be2d9b8e0a6f693b1635b2d5566645"


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    """The [project] table of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


@pytest.fixture(scope="module")
def citation() -> dict[str, object]:
    """CITATION.cff, as a dictionary."""
    return dict(yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")))


def test_the_installed_package_has_the_version_of_the_project_file(project: dict[str, object]) -> None:
    installed = metadata("gantline")
    assert installed["Version"] == project["version"], "run make again: the environment is older than pyproject.toml"
    assert installed["License-Expression"] == project["license"]
    assert gantline.__version__ == project["version"]


def test_the_citation_names_the_same_version_and_licence(project: dict[str, object], citation: dict[str, object]) -> None:
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]


def test_the_citation_has_what_its_format_requires(citation: dict[str, object]) -> None:
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_changelog_has_a_dated_entry_for_the_version(project: dict[str, object], citation: dict[str, object]) -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = re.search(rf"^## \[{re.escape(str(project['version']))}\] - (\d{{4}}-\d\d-\d\d)$", text, re.MULTILINE)
    assert entry, f"CHANGELOG.md has no entry '## [{project['version']}] - YYYY-MM-DD'"
    assert entry[1] == str(citation["date-released"])
    assert "## [Unreleased]" in text[: entry.start()]


def test_the_licence_is_the_unchanged_apache_text(project: dict[str, object]) -> None:
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    words = " ".join((ROOT / "LICENSE").read_text(encoding="utf-8").split())
    assert hashlib.sha256(words.encode()).hexdigest() == APACHE_2_0, "LICENSE differs from the standard text"


def test_pages_and_messages_name_extras_that_there_are(project: dict[str, object]) -> None:
    """Pages say what works in a checkout; messages are of a package that is installed."""
    written = [page for page in (ROOT / "docs").rglob("*.md") if "cli" not in page.relative_to(ROOT / "docs").parts]  # that one is made
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *written]
    command = re.compile(r"pip install ([^`\n#]*?)'(\S*)\[([\w,]+)\]'")
    named = [(file, *found) for file in pages for found in command.findall(file.read_text(encoding="utf-8"))]
    assert {file.name for file, *_ in named} >= {"README.md", "live.md"}
    for file, how, package, extras in named:
        assert how.strip() in ("", "-e"), file
        assert package == ".", f"{file}: pip would look for '{package}' on a package index"
        assert set(extras.split(",")) <= set(project["optional-dependencies"]), file  # type: ignore[call-overload]
    for file in (ROOT / "src").rglob("*.py"):
        for extras in re.findall(r"pip install 'gantline\[([\w,]+)\]'", file.read_text(encoding="utf-8")):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), file  # type: ignore[call-overload]
