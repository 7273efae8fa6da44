"""A Sphinx extension that writes ``docs/api/*.rst``: a page per package, filled by autodoc from the docstrings."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generated_pages import write_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def modules(package: Path) -> list[str]:
    """Dotted names of the public modules of a package folder, the package itself first."""
    found = []
    for path in package.rglob("*.py"):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        if not any(part.startswith("_") for part in parts):
            found.append(".".join(parts))
    return sorted(found)


def summary(package: Path, name: str) -> str:
    """The first sentence of a package's docstring, without importing it."""
    path = package.parent.joinpath(*name.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) if source.exists() else None
    return text.splitlines()[0] if text else ""


def pages(package: Path) -> dict[str, str]:
    """File name -> reStructuredText for every second-level package or module, and an index."""
    rooms: dict[str, list[str]] = {}
    for name in modules(package):
        rooms.setdefault(".".join(name.split(".")[:2]), []).append(name)
    index = heading("Python reference", "=") + "\nWritten from the docstrings at the time of the build.\n\n"
    index += ".. list-table::\n\n"
    for room in rooms:
        index += f"   * - :doc:`{room} <{room}>`\n     - {summary(package, room)}\n"
    index += "\n.. toctree::\n   :hidden:\n\n" + "".join(f"   {room}\n" for room in rooms)
    found = {"index.rst": index}
    for room, names in rooms.items():
        sections = [heading(room, "=")]
        for name in names:
            sections.append(heading(name, "-") if name != room else "")
            sections.append(f".. automodule:: {name}\n")
        found[f"{room}.rst"] = "\n".join(sections)
    return found


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def generate(sphinx: Sphinx) -> None:
    """Write the pages before Sphinx looks for sources."""
    package = (Path(sphinx.srcdir) / sphinx.config.api_reference_package).resolve()
    write_pages(Path(sphinx.srcdir) / "api", pages(package))


def setup(sphinx: Sphinx) -> dict[str, Any]:
    sphinx.setup_extension("sphinx.ext.autodoc")
    sphinx.add_config_value("api_reference_package", "../src/gantline", "env", [str])
    sphinx.connect("builder-inited", generate)
    return {"parallel_read_safe": True}
