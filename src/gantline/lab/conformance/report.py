"""What the suite found out about one policy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Breach:
    """One rule: kept, or broken and how, or never tested."""

    rule: str
    passed: bool
    message: str
    seen: bool = True

    @property
    def result(self) -> str:
        """The result as one word."""
        return "FAILED" if self.seen and not self.passed else "ok" if self.seen else "unseen"

    def __str__(self) -> str:
        return f"{self.result:6} {self.rule}: {self.message}"


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
        return tuple(finding for finding in self.findings if finding.seen and not finding.passed)

    def __str__(self) -> str:
        return "\n".join([f"policy '{self.policy}'", *map(str, self.findings)])
