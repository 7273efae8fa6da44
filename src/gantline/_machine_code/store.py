"""Stored code: one file per kernel and types of arguments."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from gantline._machine_code.emit import object_code, target_machine
from gantline._machine_code.folder import name_file, read_file, write_file
from gantline._machine_code.slots import Entry


class Stored(Protocol):
    """What names the files of a kernel."""

    @property
    def full_name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


def entry_file(kernel: Stored, key: str) -> Path:
    """The file of the code for these types."""
    return name_file(kernel.full_name, f"{kernel.fingerprint}|{key}", "o")


def read_entry(kernel: Stored, key: str) -> Entry | None:
    """The stored code for these types, loaded; None: there is none, or it is damaged."""
    stored = read_file(entry_file(kernel, key)) if kernel.fingerprint else None
    if stored is None:
        return None
    returns, _, code = stored.partition(b"\n")
    return _load(key, code, json.loads(returns))


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


def store_entry(kernel: Stored, key: str, made: Any) -> bool:
    """Store what Numba has made for these types; whether that was possible."""
    try:
        stored = object_code(made) if kernel.fingerprint else None
    except (AttributeError, RuntimeError, KeyError):  # another version of Numba or llvmlite, or something that slots cannot hold
        stored = None
    if stored is None:
        return False
    code, returns = stored
    return write_file(entry_file(kernel, key), json.dumps(returns).encode() + b"\n" + code)
