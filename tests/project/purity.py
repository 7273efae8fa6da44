"""Finds clocks, randomness and I/O in Python source by reading its syntax tree.

The rule protects the promise that equal snapshots give equal plans. It is a fence against slips, not against malice:
names are followed through ``import``, ``as`` and attribute access, not through assignments.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

CLOCK = "reads a clock"
CHANCE = "draws randomness that no seed controls"
IO = "does I/O"

REMEDY = {
    CLOCK: "time is a value: take it from the snapshot or as an argument",
    CHANCE: "use snapshot.rng(name), or a generator made from an explicit seed",
    IO: "take the data as an argument and return what should be written; files belong to workload, cli and report",
}

MODULES = {
    CLOCK: {"time", "sched", "asyncio", "threading", "signal"},
    CHANCE: {"random", "secrets", "uuid"},
    IO: {
        "os", "io", "pathlib", "shutil", "tempfile", "glob", "fileinput", "mmap", "fcntl", "sqlite3", "shelve", "dbm",
        "socket", "ssl", "select", "selectors", "http", "urllib", "ftplib", "smtplib", "requests", "httpx", "aiohttp",
        "subprocess", "multiprocessing", "concurrent", "ctypes", "platform", "getpass", "logging", "warnings", "syslog",
        "rich", "cyclopts", "matplotlib", "sqlalchemy", "runpy",
    },
}  # fmt: skip

NAMES = {
    **{f"datetime.{owner}.{call}": CLOCK for owner in ("datetime", "date") for call in ("now", "today", "utcnow")},
    "importlib.metadata": IO,
    "importlib.resources": IO,
    "importlib.util.spec_from_file_location": IO,
    **{f"sys.{name}": IO for name in ("stdin", "stdout", "stderr", "argv", "exit", "path")},
    **{f"numpy.{name}": IO for name in ("load", "save", "savez", "loadtxt", "savetxt", "genfromtxt", "fromfile", "memmap")},
    **{f"json.{name}": IO for name in ("load", "dump")},
    **{f"pickle.{name}": IO for name in ("load", "dump")},
    **{f"polars.{verb}_{form}": IO for verb in ("read", "scan") for form in ("csv", "parquet", "json", "ndjson", "ipc")},
}

BUILTINS = {"open": IO, "print": IO, "input": IO, "breakpoint": IO, "exec": IO, "eval": IO}

METHODS = {
    "read_text", "write_text", "read_bytes", "write_bytes", "tofile", "mkdir", "rmdir", "iterdir",
    "write_csv", "write_parquet", "write_json", "write_ndjson", "write_ipc", "sink_csv", "sink_parquet", "to_csv",
}  # fmt: skip

# Generators are values when they are made from a seed; made from nothing they ask the machine for entropy.
SEEDED = {
    "random.Random",
    *(f"numpy.random.{name}" for name in ("default_rng", "RandomState", "SeedSequence", "Generator")),
    *(f"numpy.random.{name}" for name in ("Philox", "PCG64", "PCG64DXSM", "SFC64", "MT19937")),
}
TYPES_ONLY = {"numpy.random.BitGenerator"}


@dataclass(frozen=True)
class Violation:
    """One place that breaks the rule."""

    file: str
    line: int
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} {self.kind}; {REMEDY[self.kind]}"


def violations(source: str, file: str) -> list[Violation]:
    """All places in a module that read a clock, draw chance or do I/O."""
    tree = ast.parse(source, filename=file)
    reader = _Reader(file)
    reader.visit(tree)
    return sorted(set(reader.found), key=lambda v: (v.line, v.name))


def kind_of(name: str) -> str | None:
    """The kind of a fully qualified name such as ``time.monotonic``, or None when it is pure."""
    if name in SEEDED or name in TYPES_ONLY:
        return None
    if name.startswith("numpy.random."):
        return CHANCE
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in NAMES:
            return NAMES[prefix]
    return next((kind for kind, modules in MODULES.items() if parts[0] in modules), None)


class _Reader(ast.NodeVisitor):
    """Walks one module, keeps what each local name stands for, collects violations."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.aliases: dict[str, str] = {}
        self.found: list[Violation] = []
        self.functions: list[str] = []

    def report(self, node: ast.AST, kind: str | None, name: str) -> None:
        if kind is not None:
            self.found.append(Violation(self.file, getattr(node, "lineno", 0), kind, name))

    def qualified(self, node: ast.expr) -> str | None:
        """What an expression of names and dots stands for, when an import says so."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.qualified(node.value)
            return f"{owner}.{node.attr}" if owner else None
        return None

    def visit_If(self, node: ast.If) -> None:
        """Imports for the type checker never run, so they may name anything."""
        if "TYPE_CHECKING" not in ast.dump(node.test):
            self.generic_visit(node)
            return
        for child in node.orelse:
            self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.split(".")[0]
            self.aliases[alias.asname or root] = alias.name if alias.asname else root
            if root != "random":  # random.Random(seed) is fine; every other use is reported where it happens
                self.report(node, kind_of(alias.name), alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            return
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            self.aliases[alias.asname or alias.name] = name
            self.report(node, kind_of(name), name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self.qualified(node)
        if name is None:
            self.visit(node.value)
        else:
            self.report(node, kind_of(name), name)

    def visit_Call(self, node: ast.Call) -> None:
        name = self.qualified(node.func)
        if name in SEEDED and not node.args and not node.keywords:
            self.report(node, CHANCE, f"{name}() without a seed")
        if name is None and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            self.report(node, IO, f".{node.func.attr}()")
        if name is None and isinstance(node.func, ast.Name):
            self.call_of_builtin(node, node.func.id)
        if name in ("importlib.import_module", "__import__"):
            self.dynamic_import(node)
        self.generic_visit(node)

    def call_of_builtin(self, node: ast.Call, name: str) -> None:
        if name in BUILTINS:
            self.report(node, BUILTINS[name], f"{name}()")
        if name == "__import__":
            self.dynamic_import(node)
        if name == "hash" and "__hash__" not in self.functions:  # str hashes differ from process to process
            self.report(node, CHANCE, "hash()")

    def dynamic_import(self, node: ast.Call) -> None:
        """An import by a literal name is judged like the statement; any other name would slip through."""
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            self.report(node, kind_of(first.value), first.value)
