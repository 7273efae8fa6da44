"""What Ray hands out: its actors and its module have no types that could be checked."""

from __future__ import annotations

from typing import Any, TypeAlias

Handle: TypeAlias = Any
