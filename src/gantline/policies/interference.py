"""The slowdown that Pollux' simulator can impose on jobs which span nodes and share one, whatever its policy."""

from __future__ import annotations

from typing import Final

INTERFERENCE: Final = "regime pollux: by what part jobs that span nodes and share one are slowed down"
