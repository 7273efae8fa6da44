"""Keepers of gangs in an allocation: processes of this machine, forked from one that has imported what they need."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gantline.live.launch import Launch
from gantline.live.local.fork_server import ROOT, KeeperForkServer
from gantline.live.local.incarnation import Incarnation

_PROGRAM = f"""import os, sys; sys.path[0] = {ROOT!r}
from gantline.live.local.fork_server import serve
from gantline.live.slurm.step import keep
os._exit(serve(keep=keep))"""


class StepForkServer(KeeperForkServer):
    """Its keepers run a step each."""

    def _command(self) -> tuple[Sequence[str], dict[str, str] | None]:
        return (sys.executable, "-S", "-E", "-c", _PROGRAM), dict(os.environ)


@dataclass(frozen=True)
class StepKeepers:
    """How they begin."""

    fork_server: KeeperForkServer

    def begin(self, one: Incarnation, launch: Launch) -> None:
        one.begin(self.fork_server)

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """Nothing more is known."""
