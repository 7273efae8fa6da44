"""Functions that take the options of a run by name show them: in `help`, in signatures, in notebooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import ParamSpec, TypeVar

from gantline.engine.assembly.spec import OPTIONS, RunSpec

P = ParamSpec("P")
R = TypeVar("R")


def with_options(function: Callable[P, R], *, single: bool = True) -> Callable[P, R]:
    """The same function, with its `**options` listed one by one; without `single`, only those of experiments."""
    shown = inspect.signature(function)
    kept = [item for item in shown.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
    annotations = {item.name: item.type for item in fields(RunSpec)}
    known = [item for item in OPTIONS.values() if (single or not item.single) and item.name not in shown.parameters]
    for item in known:
        kept.append(inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=annotations[item.name]))
    function.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    lines = "\n".join(f"    `{item.name}`: {item.help}" for item in known)
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Options, as on the command line:\n\n{lines}\n    "
    return function
