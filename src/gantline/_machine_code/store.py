"""The files of stored code: one per kernel and types of arguments.

Stored code belongs to one machine type: the names of the files carry the processor, its features and the versions of Numba and llvmlite.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantline._machine_code.compiler import for_python
from gantline._machine_code.emit import is_whole, object_code, target_machine
from gantline._machine_code.slots import Entry

if TYPE_CHECKING:
    from gantline._machine_code.kernel import Kernel


def _path(kernel: Kernel, key: str) -> Path | None:
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder:
        return None
    name = f"{kernel.__module__}.{kernel.__qualname__}"
    digest = hashlib.blake2b(f"{_machine()}|{name}|{key}|{sorted(kernel.options.items())}".encode(), digest_size=10).hexdigest()
    return Path(folder) / "machine-code" / f"{name}-{digest}.o"


@cache
def _machine() -> str:
    """What stored code depends on besides its source, which the folder is named after."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"{llvm.get_process_triple()}|{llvm.get_host_cpu_name()}|{features}|{version('numba')}|{llvm.llvm_version_info}|2"


def read_entry(kernel: Kernel, key: str) -> Entry | None:
    """The stored code for these types, loaded; None: there is none, or it is damaged."""
    path = _path(kernel, key)
    if path is None:
        return None
    try:
        head, _, code = path.read_bytes().partition(b"\n")
        told = json.loads(head)
        if hashlib.blake2b(code, digest_size=16).hexdigest() != told["check"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _load(key, code, told["returns"])


def _load(key: str, code: bytes, returns: list[Any]) -> Entry:
    import llvmlite.binding as llvm

    _prepare()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Entry(key, engine.get_function_address("gantline_entry"), [(int(at), str(kind)) for at, kind in returns], engine)


@cache
def _prepare() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def store_entry(kernel: Kernel, key: str, types: tuple[Any, ...]) -> bool:
    """Store the code that Numba has just made for these types; whether that was possible."""
    path = _path(kernel, key)
    if path is None:
        return False
    try:
        made = kernel.dispatcher.overloads[types]
        if not is_whole(made):  # it came out of Numba's cache, which keeps no code that could be linked
            again = for_python(kernel.function, kernel.options, cache=False)
            again.compile(types)
            made = again.overloads[types]
        stored = object_code(made)
    except (AttributeError, RuntimeError, KeyError):  # another version of Numba or llvmlite, or something that slots cannot hold
        return False
    if stored is None:
        return False
    code, returns = stored
    head = json.dumps({"check": hashlib.blake2b(code, digest_size=16).hexdigest(), "returns": returns}).encode()
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(head + b"\n" + code)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        return False
    return True
