"""A job that goes on with other devices without a stop: what is decided, and which ranks are informed (EDL, TPDS 2022, section 4).

The runner writes ``grant.json`` into the incarnation's folder, and starts newcomers, which make themselves ready and report it
(``ready.EPOCH.RANK``). When all are, the first rank decides between two steps that the gang changes now: ``switch.EPOCH``, which only one
can write; the keeper writes a refusal there if a newcomer is lost before. All ranks learn of it from the same sum, at the same
step. ``switched`` informs the runner that the new gang is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gantline.train.membership import Membership


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a job under its next epoch."""

    epoch: int
    gpus: int
    devices: tuple[str, ...]
    members: tuple[int, ...] | None  # ranks that stay, in their new order; None: the same as before
    world: int
    port: int
    refused: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any], before: Membership) -> Decision:
        """From what was written down; a refusal leaves everything as it was."""
        if values.get("refused"):
            return cls(int(values["epoch"]), before.gpus, before.devices, None, before.world, before.port, str(values["refused"]))
        members = values.get("members")
        return cls(
            int(values["epoch"]), int(values["gpus"]), tuple(values["devices"]), None if members is None else tuple(members),
            int(values.get("world") or before.world), int(values.get("port") or before.port),
        )  # fmt: skip

    @property
    def newcomers(self) -> int:
        """Ranks that join."""
        return 0 if self.members is None else self.world - len(self.members)

    def regroups(self, before: Membership) -> bool:
        """Whether other ranks than before form the gang."""
        return self.members is not None and (self.newcomers > 0 or self.members != tuple(range(before.world)))

    def after(self, before: Membership) -> Membership | None:
        """The identity of a rank from now on; None: it leaves."""
        if self.members is not None and before.rank not in self.members:
            return None
        rank = before.rank if self.members is None else self.members.index(before.rank)
        return replace(before, epoch=self.epoch, gpus=self.gpus, devices=self.devices, world=self.world, port=self.port, rank=rank)


class Switchboard:
    """The files by which the runner, the keeper and the ranks of one incarnation agree on a change."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._seen = -1  # change time of grant.json when it was last read
        self._grant: dict[str, Any] = {}

    def granted(self, member: Membership) -> dict[str, Any] | None:
        """A grant that the job does not use yet. To look costs next to nothing where there is none."""
        if self.folder is None:
            return None
        try:
            changed = os.stat(self.folder / "grant.json").st_mtime_ns
        except OSError:
            return None
        if changed != self._seen:
            self._seen, self._grant = changed, self._read("grant.json") or {}
        return self._grant if int(self._grant.get("epoch", -1)) > member.epoch else None

    def due(self, member: Membership, *, decides: bool, can_regroup: bool) -> int:
        """The epoch under which the job shall go on now, between two steps; 0: it goes on as it is."""
        order = self.granted(member)
        if order is None:
            return 0
        epoch = int(order["epoch"])
        if self._read(f"switch.{epoch}") is None:
            plan = Decision.of(order, member)
            if not decides or not all(self._is_ready(epoch, rank) for rank in range(plan.world - plan.newcomers, plan.world)):
                return 0
            refused = "" if can_regroup or not plan.regroups(member) else "it cannot form its gang anew: give train.join a gang"
            self._say_first(f"switch.{epoch}", {**order, **({"refused": refused} if refused else {"port": _free_port(member.address)})})
        return epoch

    def decision(self, epoch: int, member: Membership) -> Decision | None:
        """What was decided; None: nothing yet."""
        found = self._read(f"switch.{epoch}")
        return None if found is None else Decision.of(found, member)

    def is_switched(self, epoch: int) -> bool:
        """Whether the gang of that epoch is complete."""
        return bool(self._read("switched") == epoch)

    def say_switched(self, epoch: int) -> None:
        """Report that the gang of that epoch is complete."""
        if self.folder is not None:
            self._write("switched", epoch)

    def say_ready(self, member: Membership) -> None:
        """A newcomer has made itself ready."""
        self._write(f"ready.{member.epoch}.{member.rank}", member.rank)

    def _is_ready(self, epoch: int, rank: int) -> bool:
        return self.folder is not None and (self.folder / f"ready.{epoch}.{rank}").exists()

    def _read(self, name: str) -> Any:
        assert self.folder is not None
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        return None

    def _draft(self, name: str, value: Any) -> Path:
        assert self.folder is not None
        draft = self.folder / f"{name}.{os.getpid()}"
        draft.write_text(json.dumps(value), encoding="utf-8")
        return draft

    def _write(self, name: str, value: Any) -> None:
        draft = self._draft(name, value)
        draft.replace(draft.with_name(name))

    def _say_first(self, name: str, value: Any) -> None:
        draft = self._draft(name, value)
        with contextlib.suppress(FileExistsError):
            os.link(draft, draft.with_name(name))
        draft.unlink()


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
