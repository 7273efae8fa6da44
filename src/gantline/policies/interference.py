"""The slowdown that Pollux' simulator can impose on jobs which span nodes and share one, whatever its policy."""

from __future__ import annotations

from typing import Final, Protocol

from gantline.core.errors import UsageError

INTERFERENCE: Final = "regime pollux: by what part jobs that span nodes and share one are slowed down"


class Interfered(Protocol):
    """A policy with that parameter."""

    @property
    def name(self) -> str: ...

    @property
    def interference(self) -> float: ...


def check_interference(policy: Interfered) -> None:
    """Refuse what is no part of a job's speed."""
    if not 0.0 <= policy.interference < 1.0:
        raise UsageError(
            f"parameter 'interference' is {policy.interference}",
            where=f"policy '{policy.name}'",
            fix="use a part from 0 up to 1, such as 0.5",
        )
