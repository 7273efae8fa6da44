"""Colours: every reader can tell the first series apart."""

from itertools import combinations

import numpy as np
import pytest

from gantline.lab.report.figures.panels import DARK, LIGHT, dash, mark, rgb

# Linear RGB as seen without red, green and blue cones (Machado, Oliveira and Fernandes, 2009, full severity).
SEEN = {
    "all cones": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
    "no blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    share = np.array(rgb(colour)) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def lab(light):
    xyz = TO_XYZ @ np.clip(light, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    lights = sorted(TO_XYZ[1] @ linear(colour) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eye", SEEN)
def test_series_differ_for_every_eye(theme, eye):
    for (i, one), (k, other) in combinations(enumerate(theme.series), 2):
        if i // 4 != k // 4:  # from the fifth on, dashes and shapes help
            continue
        distance = np.linalg.norm(lab(SEEN[eye] @ linear(one)) - lab(SEEN[eye] @ linear(other)))
        assert distance > 10, f"{one} and {other} look alike with {eye}"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_everything_stands_out_from_the_ground(theme):
    for colour in theme.series:
        assert contrast(colour, theme.ground) >= 3.0 - 0.05, colour
    assert contrast(theme.text, theme.ground) >= 7
    assert contrast(theme.quiet, theme.ground) >= 4.5


def test_no_colour_of_one_theme_means_something_else_in_it():
    for theme in (LIGHT, DARK):
        tones = [theme.ground, theme.surface, theme.text, theme.quiet, theme.grid, *theme.series]
        assert len(set(tones)) == len(tones)


def test_colour_is_never_the_only_cue() -> None:
    """Six series, the most that a figure is readable with, have six dashes and six shapes."""
    assert len({dash(index) for index in range(6)}) == len({mark(index) for index in range(6)}) == 6
