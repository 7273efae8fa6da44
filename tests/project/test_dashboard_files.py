"""The files of the dashboard: those of others are what was reviewed, ours are short, keep text text, and are fetched all at once."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import gantline.live.dashboard

STATIC = Path(gantline.live.dashboard.__file__).parent / "static"
VENDOR = STATIC / "vendor"
MODULES = sorted(file for file in STATIC.rglob("*.js"))
OURS = [file for file in MODULES if file.parent != VENDOR]


def test_each_vendored_file_is_listed_with_its_hash_and_a_licence() -> None:
    packages = json.loads((VENDOR / "vendored.json").read_text(encoding="utf-8"))
    listed = {name: file["sha256"] for package in packages.values() for name, file in package["files"].items()}
    there = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir() if file.name != "vendored.json"}
    assert there == listed
    for name, package in packages.items():
        assert package["version"]
        assert package["licence"] == "MIT"
        assert "Permission is hereby granted" in (VENDOR / f"{name}.LICENSE").read_text(encoding="utf-8")


def test_the_page_asks_for_every_module_at_once() -> None:
    """Without that, a browser finds them one level of imports after the other."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    preloaded = re.findall(r'rel="modulepreload" href="/dashboard/([^"]+)"', page)
    assert preloaded == [name for file in MODULES if (name := file.relative_to(STATIC).as_posix()) != "main.js"]


def test_each_import_names_a_file_that_is_there() -> None:
    for file in OURS:
        for name in re.findall(r'from "([^"]+)"', file.read_text(encoding="utf-8")):
            assert (file.parent / name).is_file(), f"{file.name}: {name}"


def test_modules_are_short_and_say_what_they_are_for() -> None:
    for file in OURS:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 300, file.name
        assert lines[0].startswith("// "), file.name


def test_no_text_can_become_markup_or_script() -> None:
    """The content policy forbids most of these as well; what is not written needs no policy."""
    for file in OURS:
        text = file.read_text(encoding="utf-8")
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|eval\(|new Function|setAttribute\(\"style", text
        )
        assert found == [], file.name
    assert not re.search(r"<script(?![^>]*src=)|style=|\son\w+=", (STATIC / "index.html").read_text(encoding="utf-8"))
