"""Amounts as Kubernetes writes them: ``500m``, ``4``, ``16Gi``."""

from __future__ import annotations

_UNITS = {
    "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "n": 1e-9, "u": 1e-6,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip


def amount(text: object) -> float:
    """The number that a quantity means; what is none counts as nothing."""
    written = str(text or "0")
    digits = written.rstrip("mkMGTPnuKi")
    try:
        return float(digits) * _UNITS.get(written[len(digits) :], 1.0)
    except ValueError:
        return 0.0


def thousandths(value: float) -> str:
    """An amount of CPUs."""
    return f"{max(1, round(value * 1000))}m"
