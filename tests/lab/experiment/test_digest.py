"""Stored results are those of the program that made them: every room that takes part in a run counts."""

from __future__ import annotations

import subprocess
import sys

from gantline.lab.experiment.digest import DECIDING

_RUN = """
import sys
from gantline import simulate
simulate([{"job": "a", "arrival": 0, "gpus": 1, "duration": 5}], "1x1", "srtf")
print(*{name.split(".")[1] for name in sys.modules if name.startswith("gantline.")})
"""
_ONLY_SPEED = {"_alarm"}


def test_every_room_that_a_run_goes_through_is_part_of_the_program() -> None:
    rooms = set(subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, check=True).stdout.split())
    assert "simulator" in rooms
    assert rooms - _ONLY_SPEED <= {room.split("/")[0].removesuffix(".py") for room in DECIDING}
