"""Signatures of commands are read once per process: that takes longer than most of the commands that tests call.

A program of its own reads one signature, so nothing is kept there. Here the same command is called hundreds of times, each time with a copy
that holds no tokens. Where Pydantic has been imported, as tests of the service do, each value is also checked with a validator made from
the type of its option; it is made once per type.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest
from cyclopts import App
from cyclopts.argument import ArgumentCollection
from pydantic import PydanticUserError, TypeAdapter


def blank_copy(read: ArgumentCollection) -> ArgumentCollection:
    """The same arguments, as if no command line had been parsed; parts of an argument are parts of its copy."""
    copies = {id(argument): copy(argument) for argument in read}
    for argument in copies.values():
        argument.tokens = []
        argument.children = ArgumentCollection(copies[id(child)] for child in argument.children)
    return ArgumentCollection(copies.values())


def read_signatures_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what was read of each application; those that ask for their own defaults are read anew."""
    read: dict[tuple[int, bool, Any], tuple[App, ArgumentCollection]] = {}
    plain = App.assemble_argument_collection

    def assemble(app: App, *, default_parameter: Any = None, parse_docstring: bool = False) -> ArgumentCollection:
        if default_parameter is not None:
            return plain(app, default_parameter=default_parameter, parse_docstring=parse_docstring)
        key = (id(app), parse_docstring, app.app_stack.default_parameter)
        if key not in read:
            read[key] = app, plain(app, parse_docstring=parse_docstring)  # the application is held, so that its identity stays its own
        return blank_copy(read[key][1])

    monkeypatch.setattr(App, "assemble_argument_collection", assemble)


def _hashable(type: Any) -> bool:
    try:
        hash(type)
    except TypeError:  # what annotates it cannot be hashed
        return False
    return True


def make_validators_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what Pydantic has made of each type, or why it could not; who asks for more than a type gets a validator of its own."""
    made: dict[Any, dict[str, Any] | PydanticUserError] = {}
    plain = TypeAdapter.__init__

    def make(adapter: TypeAdapter[Any], type: Any, **options: Any) -> None:
        if options or not _hashable(type):
            plain(adapter, type, **options)
            return
        if type not in made:
            try:
                plain(adapter, type, _parent_depth=3)
                made[type] = vars(adapter)
            except PydanticUserError as error:
                made[type] = error
        if isinstance(found := made[type], PydanticUserError):
            raise found
        vars(adapter).update(found)

    monkeypatch.setattr(TypeAdapter, "__init__", make)
