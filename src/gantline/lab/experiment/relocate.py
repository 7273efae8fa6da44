"""Paths seen from somewhere else: those in an experiment file are seen from the file's own folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.source import TraceSource
from gantline.traces.files.clusters import is_cluster_file
from gantline.traces.files.policies import policy_file

Move = Callable[[str], str]


def move_setting(setting: Setting, move: Move) -> Setting:
    """The setting with every path in it moved: trace, cluster file, policy file, tables."""
    cluster = move(setting.cluster) if is_cluster_file(setting.cluster) else setting.cluster
    tables: dict[str, Any] = {name: move(path) for name, path in setting.named_files().items()}
    tables |= {name: move_policy(getattr(setting, name), move) for name in setting.named_code()}
    return replace(setting, trace=_move_trace(setting.trace, move), cluster=cluster, policy=move_policy(setting.policy, move), **tables)


def _move_trace(source: TraceSource, move: Move) -> TraceSource:
    """The trace's file, and files that are options of its format."""
    if not source.file:
        return source
    named = {name: move(str(value)) for name, value in source.settings.items() if name in source.path_options()}
    return replace(source, file=move(source.file), settings={**source.settings, **named})


def move_policy(policy: str, move: Move) -> str:
    """A policy's name, or its file moved: ``mine.py:Mine``."""
    file, sign, name = policy.partition(":")
    return f"{move(file)}{sign}{name}" if policy_file(file) == file else policy
