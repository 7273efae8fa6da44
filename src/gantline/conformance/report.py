"""What the suite found out about one policy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Breach:
    """One rule: kept, or broken and how."""

    rule: str
    passed: bool
    told: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'FAILED'} {self.rule}: {self.told}"


@dataclass(frozen=True)
class ConformanceReport:
    """All rules for one policy."""

    policy: str
    findings: tuple[Breach, ...]

    @property
    def passed(self) -> bool:
        return all(finding.passed for finding in self.findings)

    @property
    def broken(self) -> tuple[Breach, ...]:
        """The rules that were broken."""
        return tuple(finding for finding in self.findings if not finding.passed)

    def __str__(self) -> str:
        return "\n".join([f"policy '{self.policy}'", *map(str, self.findings)])
