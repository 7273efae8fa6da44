"""Numba's results on disk, one file per function and types, named after what the function's code depends on.

Numba's own cache is named after the path of the source file, so every checkout compiles anew; it does not notice when a function that is
called has changed; and two processes that compile the same function for different types at once may get each other's code.
"""

from __future__ import annotations

import pickle
from typing import Any

from gantline._machine_code.folder import name_file, read_file, write_file

late: Any
_Base: Any
_rebuild: Any
_dump: Any
try:
    from numba.core.caching import _Cache as _Base
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps as _dump

    from gantline._machine_code import late

    _rebuild = CompileResult._rebuild
except (ImportError, AttributeError):  # pragma: no cover - another Numba: its own cache then
    late = _Base = None


def with_late_pipeline(options: dict[str, Any], from_zero: bool) -> dict[str, Any]:
    """The options for a function that stays in LLVM's language; `from_zero`: and whose indices are never below zero."""
    return options | {"pipeline_class": late.FromZeroCompiler if from_zero else late.LateCompiler} if late is not None else options


def make_ready(dispatcher: Any) -> None:
    """Make the callees of this function callable from Python too, for all types it is compiled for."""
    if late is not None:
        add = dispatcher.add_overload

        def add_ready(made: Any) -> None:
            late.give_environments(made)
            add(made)

        dispatcher.add_overload = add_ready


def keep_results(dispatcher: Any, name: str, content: str) -> None:
    """Give a function this cache."""
    if _Base is None:  # pragma: no cover
        dispatcher.enable_caching()
    elif content:
        dispatcher._cache = ContentCache(name, content)


class ContentCache(_Base or object):  # type: ignore[misc]
    """The cache that Numba loads compiled code from and saves it to."""

    def __init__(self, name: str, content: str) -> None:
        self._name, self._content = name, content

    @property
    def cache_path(self) -> str:
        return str(name_file(self._name, self._content, "nbc").parent)

    def _file(self, types: Any) -> Any:
        return name_file(self._name, f"{self._content}|{_type_text(types)}", "nbc")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        stored = read_file(self._file(_arguments(sig)))
        if stored is None:
            return None
        is_late, pieces = pickle.loads(stored)
        result = late.put_together(target_context, pieces) if is_late else _rebuild(target_context, *pieces)
        return result if tuple(result.signature.args) == _arguments(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        if not data.library.has_dynamic_globals and all(one.can_cache for one in data.lifted):
            is_late = isinstance(data.library, late.LateLibrary)
            write_file(self._file(_arguments(sig)), _dump((is_late, late.take_apart(data) if is_late else data._reduce())))

    def enable(self) -> None:
        """Nothing to do: it always is."""

    def disable(self) -> None:
        """Nothing to do: files are named after their content."""

    def flush(self) -> None:
        """Nothing to do: files are named after their content."""


def _arguments(sig: Any) -> tuple[Any, ...]:
    return tuple(getattr(sig, "args", sig))


def _type_text(types: Any) -> str:
    """Types as text; those of named tuples with their fields, which Numba's own text leaves out."""
    words = []
    for kind in types:
        of = getattr(kind, "instance_class", None)
        words.append(f"{kind}" if of is None else f"{of.__module__}.{of.__qualname__}{getattr(of, '_fields', '')}")
        words.append(f"({_type_text(getattr(kind, 'types', ()))})")
    return ", ".join(words)
