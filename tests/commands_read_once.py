"""Signatures of commands are read once per process: that takes longer than most of the commands that tests call.

A program of its own reads one signature, so nothing is kept there. Here the same command is called hundreds of times, each time with a copy
that holds no tokens. What follows from the signature alone is not worked out again either: the names that turn an option off, the groups of
a command, and that the default of an option which is not given is a good one. Where Pydantic has been imported, as tests of the service do,
each value is also checked with a validator made from the type of its option; it is made once per type.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest
from cyclopts import UNSET, App, Parameter, core
from cyclopts.app_stack import AppStack
from cyclopts.argument import Argument, ArgumentCollection
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


def settle_signatures_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is the same for every command line. Keys are identities, so what they stand for is held beside what was found."""
    hints: dict[int, tuple[Any, Any]] = {}
    negatives: dict[tuple[int, int], tuple[Any, tuple[str, ...]]] = {}
    groups: dict[tuple[int, ...], tuple[Any, list[Any]]] = {}
    left_out: dict[tuple[int, int], Any] = {}
    sound: dict[int, Any] = {}
    plain_hint, plain_negatives = Argument._negatives_hint.fget, Parameter.get_negatives
    plain_groups, plain_convert, plain_validate = AppStack.command_groups.fget, Argument.convert_and_validate, core.validate_command

    def hint_of(argument: Argument) -> Any:
        if (key := id(argument.field_info)) not in hints:
            hints[key] = argument.field_info, plain_hint(argument)
        return hints[key][1]

    def negatives_of(parameter: Parameter, hint: Any) -> tuple[str, ...]:
        if (key := (id(parameter), id(hint))) not in negatives:
            negatives[key] = (parameter, hint), plain_negatives(parameter, hint)
        return negatives[key][1]

    def groups_of(stack: AppStack) -> list[Any]:
        frame = stack.current_frame[-2:]
        if (key := tuple(map(id, frame))) not in groups:
            groups[key] = frame, plain_groups(stack)
        return groups[key][1]

    def convert(argument: Argument, converter: Any = None) -> Any:
        if argument.tokens or argument.children or converter is not None:
            return plain_convert(argument, converter)
        if (key := (id(argument.parameter), id(argument.field_info))) in left_out:
            argument.value = UNSET
            return UNSET
        if (found := plain_convert(argument)) is UNSET:
            left_out[key] = argument.parameter, argument.field_info
        return found

    def validate(command: Any) -> None:
        if id(command) not in sound:
            plain_validate(command)
            sound[id(command)] = command

    monkeypatch.setattr(Argument, "_negatives_hint", property(hint_of))
    monkeypatch.setattr(Parameter, "get_negatives", negatives_of)
    monkeypatch.setattr(AppStack, "command_groups", property(groups_of))
    monkeypatch.setattr(Argument, "convert_and_validate", convert)
    monkeypatch.setattr(core, "validate_command", validate)


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
