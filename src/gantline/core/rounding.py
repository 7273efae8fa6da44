"""Whole numbers above and below, by conversion alone: NumPy's own are not to be had on every device."""

from __future__ import annotations

from gantline.core.jit import kernel_from_zero as kernel


@kernel
def round_up(number: float) -> float:
    """The least whole number that is not below; for numbers within 63 bits."""
    whole = float(int(number))
    return whole + 1.0 if whole < number else whole


@kernel
def round_down(number: float) -> float:
    """The greatest whole number that is not above; for numbers within 63 bits."""
    whole = float(int(number))
    return whole - 1.0 if whole > number else whole
