"""Commands that speak to a live service. They need the libraries of the extra `live`; help does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def client_of(home: Path | None) -> Any:
    """A client of the service that is meant, a `gantline.live.service.client.Client`."""
    from gantline.cli.live.connection import connect

    return connect(home)
