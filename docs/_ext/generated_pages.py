"""Writes generated pages into a folder of the documentation and removes those that are no longer generated."""

from __future__ import annotations

from pathlib import Path


def write_pages(folder: Path, pages: dict[str, str]) -> None:
    """Make the folder hold exactly these pages; untouched files keep their time, so that Sphinx reads only news."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.iterdir():
        if stale.is_file() and stale.name not in pages:
            stale.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
