"""Runners of tests share what starts their keepers."""

from __future__ import annotations

from tests.live.warm_fork_servers import warm_fork_servers

__all__ = ["warm_fork_servers"]  # a fixture
