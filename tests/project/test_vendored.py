"""What the dashboard ships of others is what was reviewed: each file has the SHA-256 that its list names, and a licence beside it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import gantline.dashboard

VENDOR = Path(gantline.dashboard.__file__).parent / "static" / "vendor"


def test_each_vendored_file_is_listed_with_its_hash_and_a_licence() -> None:
    packages = json.loads((VENDOR / "vendored.json").read_text(encoding="utf-8"))
    listed = {name: file["sha256"] for package in packages.values() for name, file in package["files"].items()}
    there = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir() if file.name != "vendored.json"}
    assert there == listed
    for name, package in packages.items():
        assert package["version"]
        assert package["licence"] == "MIT"
        assert "Permission is hereby granted" in (VENDOR / f"{name}.LICENSE").read_text(encoding="utf-8")
