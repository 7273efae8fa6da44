"""A policy with its settings in a file, as `gantline tune` writes it: wherever a policy is named, ``best.yaml`` means both.

Such a file has the keys ``policy`` and ``settings``: ``policy: las`` and below it ``settings: {threshold: 7200}``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.fields import mapping, plain_values, text
from gantline.traces.files.marked_yaml import load_marked

_KEYS = ("policy", "settings")


def read_settings_file(name: str) -> tuple[str, dict[str, str]]:
    """The policy and the settings that a file holds."""
    path = Path(name)
    try:
        document = load_marked(path.read_text(encoding="utf-8"), name)
    except FileNotFoundError:
        raise NotFoundError("no such file", where=name, fix="check the path given as --policy") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=name) from None
    with document.at():
        found = mapping(document.value, "policy file")
        for key in found:
            if key not in _KEYS:
                raise UsageError(f"unknown key '{key}'", fix=near(key, _KEYS))
        policy, settings = text(found.get("policy", ""), "policy"), mapping(found.get("settings") or {}, "settings")
        if policy.endswith((".yaml", ".yml")):
            raise UsageError("names another file of settings", where="policy", fix="name a policy, or FILE.py:CLASS")
    if ".py" in policy:
        policy = os.path.normpath(path.parent / policy)  # as seen from the file's own folder
    return policy, {key: _as_typed(value) for key, value in settings.items()}


def _as_typed(value: object) -> str:
    """A value as the command line has it, so that it is checked in the same way."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def settings_text(policy: str, settings: Mapping[str, object], folder: Path, remark: str = "") -> str:
    """What such a file in this folder says; lines of the remark are comments at its top."""
    if ".py" in policy:
        policy = os.path.relpath(policy, folder)
    body = yaml.safe_dump({"policy": policy, "settings": plain_values(settings)}, sort_keys=False, allow_unicode=True)
    return "".join(f"# {line}\n" for line in remark.splitlines()) + body
