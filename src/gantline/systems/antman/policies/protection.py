"""How much of a device a guest may use: more step by step while its hosts do not notice, less at once when they do (section 3.3).

A host is what it was if its mini-batches take no longer than alone, within a tolerance. A share at which a host noticed the guest is not
tried again until the company changes: another host, or one that uses more or less of the device than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LEAST = 0.01
"""A guest never stops altogether; it would not find out that its hosts have become idle."""

Company = tuple[tuple[int, float], ...]


class GuestShare(NamedTuple):
    """What a guest may use of each of its devices."""

    part: float
    ceiling: float = 1.0  # the most that may be tried
    company: Company = ()  # row of each host, and how much it uses

    @property
    def rises(self) -> bool:
        """Whether more may be tried later."""
        return bool(self.company) and self.part < self.ceiling

    def after(self, company: Company, slowdown: Sequence[float], tolerance: float, step: float, *, due: bool) -> GuestShare:
        """The next share, by how many times longer than alone the hosts' mini-batches take (NaN: not known yet); `due`: time for more."""
        if not company:
            return GuestShare(1.0)
        if {row for row, _ in company} - {row for row, _ in self.company}:  # a host has come: it is to run as alone first
            return GuestShare(min(self.part, step), 1.0, company)
        ceiling = self.ceiling if company == self.company else 1.0
        if any(each > 1.0 + tolerance for each in slowdown):
            return GuestShare(max(self.part / 2.0, LEAST), max(self.part - step, LEAST), company)
        known = all(each == each for each in slowdown)
        return GuestShare(min(self.part + step, ceiling) if due and known else min(self.part, ceiling), ceiling, company)
