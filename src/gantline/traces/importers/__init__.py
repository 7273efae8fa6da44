"""Traces from foreign logs, each by the function of its format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gantline.traces.importers.registry import read_as
from gantline.traces.trace import Trace


def import_trace(name: str, src: str | Path, options: Mapping[str, object] | None = None) -> Trace:
    """Read ``src`` in the format ``name``; option values may be text, as on a command line."""
    return read_as(name, src, options or {}, Trace)
