"""Which policy was in charge over time, as a strip above a picture of devices."""

from __future__ import annotations

import numpy as np

from gantline.lab.report.figures.palette import RASTER, rgb
from gantline.lab.report.figures.panels import Axis, Panel, Raster, brief
from gantline.lab.report.frames import RunLike
from gantline.lab.report.in_charge import spells_in_charge

WIDTH = 1600
HEIGHT = 0.12
_SHADES = RASTER[::-1]  # users and jobs take theirs from the other end


def strip(run: RunLike, time: Axis, unit: float) -> tuple[Panel, ...]:
    """One panel over the same time; none where one policy decided all the time. Of several in one pixel the last is shown."""
    spells = spells_in_charge(run)
    if not spells or time.high is None:
        return ()
    names = list(dict.fromkeys(policy for _, _, policy in spells))
    shades = {name: rgb(_SHADES[place % len(_SHADES)]) for place, name in enumerate(names)}
    begin, span = spells[-1][1] - time.high * unit, time.high * unit
    pixels = np.zeros((1, WIDTH, 4), dtype=np.uint8)
    for since, until, policy in spells:
        first, last = (int((at - begin) / span * WIDTH) for at in (since, until))
        pixels[0, first : max(first + 1, last)] = (*shades[policy], 255)
    picture = Raster(pixels, 0.0, time.high, 0.0, 1.0, tuple((brief(name), shades[name]) for name in names))
    return (Panel(time, Axis("", low=0.0, high=1.0, ticks=((0.5, "in charge"),)), (picture,), legend="above", height=HEIGHT),)
