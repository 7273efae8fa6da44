"""The command line as a person types it."""

from __future__ import annotations

import shlex

from gantline.cli.main import main


def typed(line: str, *more: str) -> int:
    """The exit code of ``gantline`` for a line as a shell takes it apart, and further arguments as they are."""
    return main([*shlex.split(line), *more])
