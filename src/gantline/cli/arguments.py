"""What people type, turned into values: settings, times, windows of jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gantline.core.errors import UsageError
from gantline.core.fields import key_values
from gantline.core.units import seconds

if TYPE_CHECKING:
    from gantline.core.policy import Policy
    from gantline.engine.assembly.spec import RunSpec

PolicyName = Annotated[str, Parameter(help="A name from 'gantline policy list', FILE.py:CLASS, or a YAML file with policy and settings.")]
Settings = Annotated[list[str] | None, Parameter(name="--set", negative="", help="A parameter, key=value; may be repeated.")]

_SETTING = re.compile(r"[A-Za-z_][\w-]*=")


def spread_settings(tokens: Sequence[str]) -> list[str]:
    """Read ``--set a=1 b=2`` as ``--set a=1 --set b=2``."""
    spread: list[str] = []
    inside = False
    for token in tokens:
        if inside and _SETTING.match(token) and spread[-1] != "--set":
            spread.append("--set")
        inside = token == "--set" or (inside and _SETTING.match(token) is not None)
        spread.append(token)
    return spread


def settings_of(pairs: Sequence[str] | None, where: str = "--set") -> dict[str, str]:
    """Parameters from ``key=value`` texts."""
    return key_values(pairs or (), where)


def with_settings(spec: RunSpec, settings: dict[str, str], policy: type[Policy]) -> tuple[RunSpec, dict[str, str]]:
    """Options of the run that `--set` names too (those that the policy has no parameter for), and the policy's own settings."""
    from dataclasses import fields, replace

    from gantline.engine.assembly.spec import OPTIONS

    own = {item.name for item in fields(policy)}
    moved = {name: value for name, value in settings.items() if name not in own and name in OPTIONS and OPTIONS[name].settable}
    read = {name: OPTIONS[name].read(value, f"--set {name}") for name, value in moved.items()}
    return replace(spec, **read), {name: value for name, value in settings.items() if name not in moved}


def time_of(text: str | None, where: str, *, above: bool = False) -> float | None:
    """Seconds from ``90``, ``15m``, ``2h`` or ``HH:MM:SS``; None stays None. `above`: zero is refused."""
    if text is None:
        return None
    try:
        value = seconds(text, where)
    except ValueError:  # two decimal points and the like
        value = math.nan
    if math.isnan(value) or value < 0 or (above and value == 0):
        wanted = "a time above zero" if above else "a time"
        raise UsageError(f"'{text}' is not {wanted}", where=where, fix="write 90, 90s, 15m, 2h, 1d, HH:MM:SS or D-HH:MM:SS")
    return value


def finite_time_of(text: str | None, where: str, *, above: bool = False) -> float | None:
    """As `time_of`, but infinity is refused."""
    value = time_of(text, where, above=above)
    if value is not None and math.isinf(value):
        raise UsageError(f"'{text}' never ends", where=where, fix="give a number of seconds")
    return value


def signed_time_of(text: str, where: str) -> float:
    """A time that may lie in the past: ``-2h``."""
    earlier = text.strip().startswith("-")
    value = finite_time_of(text.strip().removeprefix("-"), where) or 0.0
    return -value if earlier else value


def window_of(text: str | None, where: str = "--track") -> tuple[int, int] | None:
    """Two positions from ``LO:HI``."""
    if text is None:
        return None
    low, sign, high = text.partition(":")
    if not sign or not low.strip().isdigit() or not high.strip().isdigit():
        raise UsageError(f"'{text}' is not a window of jobs", where=where, fix="write LO:HI, such as 1000:2000, counted from 0")
    return int(low), int(high)
