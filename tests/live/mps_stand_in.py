"""A control program that behaves as ``nvidia-cuda-mps-control`` does: a daemon in a pipe directory, with a server below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gantline.live.runners.local.slices import Daemon

PROGRAM = """#!/bin/sh
file=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
case "$1" in
-d)
    [ -e "$0.broken" ] && { echo "no CUDA-capable device is detected" >&2; exit 1; }
    rm -f "$file"
    setsid "$0" -f </dev/null >/dev/null 2>&1 &
    while [ ! -s "$file" ]; do sleep 0.01; done
    ;;
-f)
    sleep 100000 &
    echo "$! serves $CUDA_VISIBLE_DEVICES" >> "$CUDA_MPS_LOG_DIRECTORY/control.log"
    trap 'kill $(jobs -p) 2>/dev/null; exit 0' TERM
    echo $$ > "$file"
    while :; do wait; sleep 1; done
    ;;
*)
    read -r command rest
    case "$command" in
    quit) kill "$(cat "$file")" ;;
    get_server_list) pgrep -P "$(cat "$file")" ;;
    esac
    ;;
esac
"""


class ControlProgram:
    """The program, which tests can break, and what its daemons do."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "nvidia-cuda-mps-control"
        self.path.write_text(PROGRAM)
        self.path.chmod(0o755)

    def cannot_start(self) -> None:
        """From now on it fails."""
        self.path.with_name(f"{self.path.name}.broken").touch()


@pytest.fixture
def control_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlProgram]:
    """The program on the path; none of its daemons outlives the test."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    yield ControlProgram(tmp_path / "bin")
    for file in tmp_path.rglob("*.pid"):
        Daemon(file.parent, "").end()
