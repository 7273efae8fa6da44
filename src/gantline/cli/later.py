"""Libraries that are imported when something of them is needed for the first time.

A placeholder in the table of imported modules represents the library until then, so ``import polars as pl`` in a module costs nothing as
long as no function of the module uses it. Python's own `LazyLoader` does not suffice: a second ``import`` of the same name would already
load it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any

_lock = RLock()


def import_later(name: str) -> None:
    """Have this library imported on first use, unless it is there already."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    module.__class__ = _Later
    module.__dict__.pop("__path__", None)  # an import of a part of the library asks for this first
    sys.modules[name] = module


def is_there(name: str) -> bool:
    """Whether a library has really been imported."""
    return name in sys.modules and type(sys.modules[name]) is not _Later


class _Later(ModuleType):
    """A library that is loaded on the first access to an attribute."""

    def __getattr__(self, name: str) -> Any:
        with _lock:
            if type(self) is _Later and "__path__" not in self.__dict__:
                spec = self.__spec__
                assert spec is not None
                assert spec.loader is not None
                self.__path__ = list(spec.submodule_search_locations or ())
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
            elif type(self) is _Later:  # asked by the library itself, while it is being loaded
                raise AttributeError(f"module '{self.__name__}' has no attribute '{name}' yet", name=name, obj=self)
        return getattr(self, name)
