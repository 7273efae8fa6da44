"""Paths seen from somewhere else: those in an experiment file are seen from the file's own folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gantline.experiment.setting import Setting

Move = Callable[[str], str]


def move_setting(setting: Setting, move: Move) -> Setting:
    """The setting with every path in it moved: trace, cluster file, policy file."""
    trace = replace(setting.trace, file=move(setting.trace.file)) if setting.trace.file else setting.trace
    cluster = move(setting.cluster) if setting.cluster.endswith((".yaml", ".yml")) else setting.cluster
    return replace(setting, trace=trace, cluster=cluster, policy=move_policy(setting.policy, move))


def move_policy(policy: str, move: Move) -> str:
    """A policy's name, or its file moved: ``mine.py:Mine``."""
    file, sign, name = policy.partition(":")
    return f"{move(file)}{sign}{name}" if file.endswith(".py") else policy
