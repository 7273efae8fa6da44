"""Functions of SciPy's that distributions are made of, without the layer for other libraries of arrays around them.

That layer imports a hundred modules, which takes ten times as long as most traces take to make; the functions are the same objects.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

_NAMES = ("gamma", "gammaincinv", "ndtr", "ndtri", "stdtr", "stdtrit")
_HOME = "scipy.special"


def _compiled() -> object:
    """The module that holds the compiled functions: imported as part of a package whose own first lines are not run."""
    if _HOME in sys.modules:
        return sys.modules[_HOME]
    package = ModuleType(_HOME)
    package.__path__ = [str(Path(str(import_module("scipy").__file__)).with_name("special"))]
    sys.modules[_HOME] = package
    try:
        found = import_module(f"{_HOME}._ufuncs")
    except ImportError:  # another version of SciPy, which keeps them elsewhere
        found = None
    finally:
        del sys.modules[_HOME]
    return found if all(hasattr(found, name) for name in _NAMES) else import_module(_HOME)


_found = _compiled()
gamma, gammaincinv, ndtr, ndtri, stdtr, stdtrit = (getattr(_found, name) for name in _NAMES)
