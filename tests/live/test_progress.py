"""How long a job will take in all, by what it says while it runs."""

from __future__ import annotations

import math
from typing import Any

from gantline.live.scheduler.progress import Progress


def test_a_speed_is_seen_between_two_reports_of_one_life() -> None:
    """The engine took 3 s for the start, in truth it took 4: the job has done a tenth of a second's work when it seems to have done 1.1 s.

    A first report that is believed makes this job of 10 s one of 110, and shortest first would stop it for anybody.
    """
    nobody: Any = None
    progress = Progress(nobody, nobody, nobody, "never")
    assert math.isnan(progress._whole("a", 1, 4.1, 1.1, 1.0, done=10, total=1000, is_known=True))
    assert progress._whole("a", 1, 9.1, 6.1, 1.0, done=510, total=1000, is_known=True) == 6.1 + 4.9
    assert math.isnan(progress._whole("a", 2, 20.0, 6.5, 1.0, done=511, total=1000, is_known=True))  # another start
    assert progress._whole("a", 2, 22.0, 7.5, 0.5, done=611, total=1000, is_known=True) == 7.5 + 0.5 * 7.78  # a slower device
    assert progress._whole("b", 1, 4.1, 1.1, 1.0, done=10, total=1000, is_known=False) == 110.0  # better than nothing
    assert math.isnan(progress._whole("b", 1, 5.0, 2.0, 1.0, done=0, total=0, is_known=False))
