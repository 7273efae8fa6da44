"""How one run of an experiment ended; a failure is a result too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

DONE, FAILED, DISK_FULL = "done", "failed", "disk-full"


@dataclass(frozen=True)
class Outcome:
    """How a task ended: `done`, `failed` with a message, or `disk-full`."""

    hash: str
    state: str
    message: str = ""
    detail: str = ""
    seconds: float = 0.0
    facts: Mapping[str, object] = field(default_factory=dict)

    def to_line(self) -> str:
        """The outcome as a line of JSON, which a worker process writes."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def read(cls, line: str) -> Outcome:
        """The outcome that a worker process wrote."""
        return cls(**json.loads(line))
