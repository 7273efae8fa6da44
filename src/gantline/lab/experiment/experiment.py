"""An experiment: a grid with a title and what to compare, as a value that a file can hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.fields import mapping, number, text, whole
from gantline.lab.experiment.compare import METRICS
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.setting import MANY, Move, Setting, move_policy, move_setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.whole_files import write_text
from gantline.traces.files.marked_yaml import Marked, load_marked

VERSION = 1
RUN_FIELDS = tuple(name for name in MANY if name != "seed")  # seeds are many


@dataclass(frozen=True)
class Experiment:
    """What to run and what to compare."""

    grid: Grid
    title: str = ""
    against: str = ""
    metrics: tuple[str, ...] = METRICS
    confidence: float = 0.95

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """The experiment as the mapping of a file; paths are seen from `folder`."""

        def move(path: str) -> str:
            return os.path.relpath(path, folder) if folder else path

        base = move_setting(self.grid.base, move)
        run = {key: value for key, value in base.to_dict().items() if key in RUN_FIELDS}
        found: dict[str, Any] = {"version": VERSION, "title": self.title, "trace": base.trace.to_dict(), "cluster": base.cluster}
        found["policies"] = [_policy_entry(choice, move) for choice in self.grid.policies]
        found |= {
            "loads": list(self.grid.loads),
            "seeds": list(self.grid.seeds),
            "vary": {k: list(v) for k, v in self.grid.vary.items()},
            **run,
        }
        if len(self.grid.policies) > 1:
            found["compare"] = {"against": self.against, "metrics": list(self.metrics), "confidence": self.confidence}
        return {key: value for key, value in found.items() if value not in ("", [], {})}


def write_experiment(experiment: Experiment, path: Path) -> Path:
    """Write the experiment so that it can be run again from there."""
    return write_text(path, yaml.safe_dump(experiment.to_dict(path.parent), sort_keys=False, allow_unicode=True, width=120))


def _policy_entry(choice: PolicyChoice, move: Move) -> Any:
    policy = move_policy(choice.policy, move)
    entry = {"policy": policy, "settings": dict(choice.settings), "name": choice.name}
    return policy if not (choice.settings or choice.name) else {key: value for key, value in entry.items() if value}


# Experiments from YAML files; every mistake names its line, its field and what would be right.

_FIELDS = ("version", "title", "trace", "cluster", "policies", "loads", "seeds", "vary", *RUN_FIELDS, "compare")
_REQUIRED = ("version", "trace", "cluster", "policies")
_COMPARE_FIELDS = ("against", "metrics", "confidence")


def read_experiment(path: Path) -> Experiment:
    """The experiment in a file; a mistake names line, field and what would be right."""
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(path), fix="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from None
    document = load_marked(content, str(path))
    given = document.value
    if not isinstance(given, dict):
        raise UsageError("is not a mapping", where=str(path), fix="begin with version: 1")
    _check_version(document)
    _only(document, given, _FIELDS, ())
    for key in _REQUIRED:
        if given.get(key) in (None, "", [], {}):
            raise UsageError(f"lacks '{key}'", where=str(path), fix=f"add {key}: ...")
    grid = _read_grid(document, path.parent)
    compare = _block(document, "compare", _COMPARE_FIELDS)
    with document.at("compare"):
        metrics = tuple(text(name, "metrics") for name in compare.get("metrics", METRICS))
        return Experiment(
            grid,
            str(given.get("title") or ""),
            str(compare.get("against") or ""),
            metrics,
            number(compare.get("confidence", 0.95), "confidence"),
        )


def _read_grid(document: Marked, folder: Path) -> Grid:
    def move(path: str) -> str:
        return str(folder / path)

    given = document.value
    with document.at("trace"):
        source = TraceSource.read(given["trace"])
    choices = _policies(document)
    fields: dict[str, Any] = {}
    for key in ("cluster", *RUN_FIELDS):
        if key in given:
            with document.at(key):
                tried = Setting(source, fields.get("cluster", "1x1"), "fifo").with_value(key, given[key])
                move_setting(tried, move).check([key])
                fields[key] = getattr(tried, key)
    inside = move_setting(Setting(source, policy="fifo", **fields), move)
    choices = tuple(replace(choice, policy=move_policy(choice.policy, move)) for choice in choices)
    vary = _block(document, "vary", None)
    for name, values in vary.items():
        if not isinstance(values, list):
            raise UsageError(f"{values!r} is not a list", where=document.where(("vary", name)), fix=f"write [{values}]")
    with document.at("loads"):
        loads = tuple(number(value, "loads") for value in _listed(given.get("loads", [])))
    with document.at("seeds"):
        seeds = _seeds(given.get("seeds", 1))
    with document.at():
        grid = Grid(inside, choices, loads, seeds, vary)
    for choice in range(len(choices)):
        with document.at("policies", choice):
            Grid(inside, (choices[choice],)).cases()
    with document.at():
        first = grid.cases()[0].setting
    with document.at("trace"):
        first.trace.load(first.seed)  # a generator's settings are known to the generator alone
    return grid


def _policies(document: Marked) -> tuple[PolicyChoice, ...]:
    given = document.value["policies"]
    choices = []
    for index, entry in enumerate(_listed(given)):
        with document.at("policies", index):
            if isinstance(entry, str):
                choices.append(PolicyChoice(entry))
                continue
            _only(document, mapping(entry, "policy"), ("policy", "settings", "name"), ("policies", index))
            choices.append(
                PolicyChoice(
                    text(entry.get("policy", ""), "policy"), mapping(entry.get("settings") or {}, "settings"), str(entry.get("name") or "")
                )
            )
    return tuple(choices)


def _check_version(document: Marked) -> None:
    version = document.value.get("version", VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise UsageError(f"{version!r} is not a version", where=document.where(("version",)), fix=f"write version: {VERSION}")
    if version > VERSION:
        what = f"version {version} is newer than this program, which reads {VERSION}"
        raise RefusedError(what, where=document.where(("version",)), fix="upgrade gantline")


def _block(document: Marked, name: str, known: tuple[str, ...] | None) -> dict[str, Any]:
    with document.at(name):
        found = mapping(document.value.get(name) or {}, name)
    if known is not None:
        _only(document, found, known, (name,))
    return found


def _only(document: Marked, given: Mapping[str, Any], known: tuple[str, ...], path: tuple[str | int, ...]) -> None:
    for key in given:
        if key not in known:
            raise UsageError("there is no such field", where=document.where((*path, key)), fix=near(key, known))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, list):
        return tuple(whole(item, "seeds") for item in value)
    count = whole(value, "seeds")
    if count < 1:
        raise UsageError(f"{count} is not a number of seeds", where="seeds", fix="write seeds: 5 or seeds: [1, 2, 3]")
    return tuple(range(count))
