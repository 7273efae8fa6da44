"""One incarnation of a job in an allocation: as one on this machine, but that Slurm may have ended what its keeper has started.

Where a part of a gang is gone without a word, its end is seen when it is known whose fault that is, and told behind the loss of the node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gantline.live.local.files import read_json, write_json
from gantline.live.local.incarnation import Incarnation
from gantline.live.slurm.messages import LEASE
from gantline.live.slurm.nodes import SlurmNodes
from gantline.live.slurm.steps import end_step

_UNKNOWN = "?"


@dataclass
class SlurmIncarnation(Incarnation):
    """One incarnation, under one epoch."""

    nodes: SlurmNodes = field(kw_only=True)
    checkpoints: Path = field(kw_only=True)
    verdict: str = ""  # whose fault the loss of a part is: ``node``, ``engine``; empty: it is not known yet

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint" if self.is_trial else self.checkpoints / self.job / "checkpoint"

    def names(self) -> list[str]:
        """The nodes that it is on."""
        return list(self.order.get("nodes", ()))

    @property
    def is_doubtful(self) -> bool:
        """Whether it has ended, and it is not known whose fault that is."""
        written = read_json(str(self.folder / "state.json")) if not self.over else None
        return isinstance(written, dict) and written.get("phase") == "over" and written.get("fault") == _UNKNOWN

    def missing(self) -> list[str]:
        """Those of its nodes that the allocation does not have; all of them where it is in another allocation."""
        if self.order.get("allocation") not in (None, self.nodes.job):
            return self.names()
        return [name for name in self.names() if name not in self.nodes.present]

    def read(self) -> bool:
        seen, before = self.seen, self.state
        if not super().read():
            return False
        if self.over and self.state.get("fault") == _UNKNOWN:
            if not self.verdict:
                self.seen, self.state = seen, before
                return False
            self.state["fault"] = self.verdict
            write_json(str(self.folder / "state.json"), self.state)
            self.read()
        return True

    def adopt(self) -> bool:
        self.order = read_json(str(self.folder / "order.json")) or {}
        self.verdict = "node" if self.missing() else "engine"
        alive = super().adopt()
        if alive and not self.missing():
            self.verdict = ""
        return alive

    def abandoned(self) -> bool:
        return False if self.is_doubtful and not self.verdict else super().abandoned()

    def end_strays(self) -> None:
        """Its keeper was killed: Slurm ends what is left of its step."""
        if step := self.state.get("step"):
            end_step(str(step), LEASE)

    def mark(self) -> int:
        return int(self.state.get("mark", -1))
