"""A Sphinx extension that writes ``docs/cli/*.md``: what ``gantline COMMAND --help`` prints, a page per command."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from sphinx.util import logging

from generated_pages import write_pages

if TYPE_CHECKING:
    from cyclopts import App
    from sphinx.application import Sphinx

WIDTH = 84
logger = logging.getLogger(__name__)


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all visible commands below an app, such as ``("policy", "show")``, parents before children."""
    seen: set[int] = set()
    for name in app:
        if name.startswith("-"):
            continue
        command = app[name]
        if id(command) in seen or not command.show:
            continue
        seen.add(id(command))
        yield (*path, name)
        yield from commands(command, (*path, name))


def help_text(app: App, path: tuple[str, ...]) -> str:
    """The help of one command as plain text, as a terminal of fixed width would show it."""
    out = StringIO()
    app.help_print(list(path), console=Console(file=out, width=WIDTH, color_system=None, force_terminal=False))
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())


def pages(app: App) -> dict[str, str]:
    """File name -> Markdown for every top-level command (its subcommands are sections), and an index."""
    program = app.name[0]
    found: dict[str, list[str]] = {}
    for path in commands(app):
        level = "#" * len(path)
        title = f"{level} `{' '.join((program, *path))}`"
        found.setdefault(path[0], []).append(f"{title}\n\n{fenced(help_text(app, path))}\n")
    index = (
        "# Command line\n\n"
        "These pages are written from the program at build time. Data goes to stdout, messages to stderr.\n\n"
        "| exit code | meaning |\n|---|---|\n"
        "| 0 | done |\n| 1 | the job failed |\n| 2 | the request is wrong |\n"
        "| 3 | not found |\n| 4 | refused by a rule or a quota |\n| 5 | a service does not answer |\n\n"
        f"{fenced(help_text(app, ()))}\n\n"
        "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(found) + "\n```\n"
    )
    return {"index.md": index, **{f"{name}.md": "\n".join(sections) for name, sections in found.items()}}


def fenced(text: str) -> str:
    """A block of plain text, with a fence longer than any inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def load(target: str) -> App:
    """The app that ``module:name`` stands for."""
    module, _, name = target.partition(":")
    app: App = getattr(import_module(module), name)
    return app


def generate(sphinx: Sphinx) -> None:
    """Write the pages before Sphinx looks for sources; a program that cannot be loaded costs a warning."""
    target = sphinx.config.cli_reference_app
    try:
        found = pages(load(target))
    except (ImportError, AttributeError) as error:
        logger.warning("the command line '%s' cannot be described: %s", target, error)
        found = {"index.md": f"# Command line\n\n`{target}` could not be loaded when these pages were built.\n"}
    write_pages(Path(sphinx.srcdir) / "cli", found)


def setup(sphinx: Sphinx) -> dict[str, Any]:
    sphinx.add_config_value("cli_reference_app", "gantline.cli.main:app", "env", [str])
    sphinx.connect("builder-inited", generate)
    return {"parallel_read_safe": True}
