"""Devices of a running service in their idle time: no job is on a node, and none may come until we are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LOOK = 1.0  # seconds between checks


@contextmanager
def idle_node(client: Any, name: str, say: Callable[[str], None], look: float = _LOOK) -> Iterator[None]:
    """Wait until no job is on a node, and keep it so: it is cordoned meanwhile. A node that the service does not have is free to use."""
    reported = False
    while True:
        node = _node(client, name)
        if node is None:
            yield
            return
        if node["state"] == "up" and not node["busy"]:
            client.cordon(name)
            if not _node(client, name)["busy"]:
                break
            client.uncordon(name)  # a job came first
        if not reported:
            say(f"waiting until no job is on {name}")
            reported = True
        time.sleep(look)
    try:
        yield
    finally:
        client.uncordon(name)


def _node(client: Any, name: str) -> Any:
    return next((node for node in client.nodes() if node["name"] == name), None)
