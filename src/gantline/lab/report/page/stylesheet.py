"""The style of a page: the colours of both themes as variables, then the rules."""

from __future__ import annotations

from gantline.lab.report.figures.palette import DARK, LIGHT, Theme
from gantline.lab.report.page.resources import resource

_MORE = {"light": "--accent:#0072b2;--warn:#fff3d6;--warn-edge:#b87f00", "dark": "--accent:#4aa8e8;--warn:#33290f;--warn-edge:#e0a92e"}
_PAPER = ":root, :root[data-theme] { color-scheme: light; --ground:#ffffff;--surface:#f2f3f5;--text:#000000;--quiet:#444444;--grid:#bbbbbb;"


def stylesheet() -> str:
    """All of it; the screen chooses a theme, the reader may choose the other one, and paper is always light."""
    light, dark = _variables(LIGHT, "light"), _variables(DARK, "dark")
    series = "".join(f".c{number} {{ --c: var(--s{number}); }}\n" for number in range(len(LIGHT.series)))
    return "\n".join(
        [
            f":root {{ color-scheme: light dark; {light} }}",
            f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}',
            f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}',
            ':root[data-theme="light"] { color-scheme: light; }',
            f"@media print {{ {_PAPER}{_series(LIGHT)} }} }}",
            series + resource("style.css"),
        ]
    )


def _variables(theme: Theme, name: str) -> str:
    ground = ";".join(f"--{part}:{getattr(theme, part)}" for part in ("ground", "surface", "text", "quiet", "grid"))
    return f"{ground};{_MORE[name]};{_series(theme)}"


def _series(theme: Theme) -> str:
    return ";".join(f"--s{number}:{colour}" for number, colour in enumerate(theme.series))
