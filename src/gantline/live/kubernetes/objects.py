"""Objects of the API as plain values, and their paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

Object: TypeAlias = dict[str, Any]
Shown: TypeAlias = Mapping[str, Any]  # one that is only read


def path_of(kind: str, namespace: str = "", name: str = "", group: str = "") -> str:
    """Of objects (``pods``), an object, or what belongs to one (name ``a/binding``); `group` with its version: ``apps/v1``."""
    root = f"/apis/{group}" if group else "/api/v1"
    space = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{space}/{kind}" + (f"/{quote(name)}" if name else "")
