"""Bundles of profiles as files: one JSON document, written whole or not at all."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

from gantline.core.errors import NotFoundError, TraceError
from gantline.core.json_reader import loads
from gantline.models.bundle import FORMAT, Bundle
from gantline.traces.unpack import read_text


def read_bundle(given: Bundle | str | Path) -> Bundle:
    """A bundle, or the file that holds one."""
    if isinstance(given, Bundle):
        return given
    path = Path(given)
    if not path.is_file():
        raise NotFoundError("no such file", where=f"profiles {path}", fix=f"make one: gantline profile run NAME --file {path} -- COMMAND")
    return parse_bundle(read_text(path), str(path))


def parse_bundle(text: str, source: str) -> Bundle:
    """The bundle that a text holds."""
    try:
        body = loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(f"is not JSON: {error.msg}", file=source, line=error.lineno) from None
    return Bundle.of(body, source)


def is_bundle(text: str) -> bool:
    """Whether a JSON text is a bundle rather than a plain throughput table."""
    return f'"{FORMAT.split("/")[0]}/' in text[:4096]


def write_bundle(bundle: Bundle, path: str | Path) -> None:
    """Write a bundle; a reader sees the old file or the new one."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(bundle.to_json(), indent=1) + "\n", encoding="utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def default_bundle() -> Bundle:
    """The profiles that come with the product; `docs/live-gpu.md` says how they were measured."""
    place = files("gantline.traces.files") / "default_profiles.json"
    return parse_bundle(place.read_text(encoding="utf-8"), "default profiles")
