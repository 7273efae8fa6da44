"""Runners by name, which carry out the orders of a service: ours, and those of installed packages (group ``gantline.runners``).

An entry is a class derived from `LocalRunner`, made with the service's folder and the devices that were declared. It is imported when a
service uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantline.core.errors import UsageError
from gantline.registry import Register

if TYPE_CHECKING:
    from gantline.runtime.local.runner import LocalRunner

RUNNERS = Register("runners", {"local": ("gantline.runtime.local.runner:LocalRunner", "processes on this machine")}, where="--executor")


def find_runner(name: str) -> type[LocalRunner]:
    """The class of that name."""
    found = RUNNERS.load(name)
    from gantline.runtime.local.runner import LocalRunner

    if not (isinstance(found, type) and issubclass(found, LocalRunner)):
        what = f"'{name}' is a {found.__name__ if isinstance(found, type) else type(found).__name__}, not an executor of a service"
        raise UsageError(what, where="--executor", fix="derive it from gantline.runtime.local.runner.LocalRunner")
    return found
