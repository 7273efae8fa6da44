"""AntMan on the engine: guaranteed jobs as if alone, and guests on what they leave idle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gantline.core.errors import UsageError
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.models.sharing.device_contention import MINIBATCH
from gantline.systems.antman.policies.floor import Floor
from gantline.systems.antman.policies.protection import GuestShare

OPPORTUNISTIC = "opportunistic"
"""The metric that says whether a job is a guest (1) or guaranteed (0, or unknown)."""
_MINIBATCH = 1.0
"""Seconds after which a share that was cut is looked at again: a few mini-batches."""
_SOON = 1e-6


@dataclass(frozen=True)
class AntMan(Policy):
    """Guaranteed jobs get devices of their own, in order of arrival; opportunistic ones share them as guests, and never slow them down.

    A guaranteed job that does not fit whole reserves what there is: other guaranteed jobs stay away, guests do not.
    """

    name: ClassVar[str] = "antman"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = "Xiao et al.: AntMan: Dynamic Scaling on GPU Clusters for Deep Learning (OSDI 2020)"

    quotas: str = field(default="", metadata={"help": "devices that the guaranteed jobs of a user may hold: alice=8,bob=16; others: any"})
    patience: float = field(
        default=math.inf, metadata=about("seconds that a guaranteed job waits before it may start as a guest", low=0.0, unit="seconds")
    )
    busy: float = field(default=0.8, metadata=about("guests go to devices that are used less than this", above=0.0, high=1.0))
    tolerance: float = field(default=0.02, metadata=about("how much longer a host's mini-batch may take", above=0.0, finite=True))
    step: float = field(default=0.05, metadata=about("by how much the share of a guest is raised", above=0.0, high=1.0))
    interval: float = field(default=60.0, metadata=about("seconds between two rises of shares", above=0.0, finite=True, unit="seconds"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._quotas()

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, now = snapshot.jobs, snapshot.now
        known: dict[str, GuestShare] = {row: GuestShare(*share) for row, share in (snapshot.memory or {}).get("shares", {}).items()}
        floor = Floor(snapshot, {int(row) for row in known})
        order = np.argsort(jobs.arrival, kind="stable").tolist()
        guest = (jobs.metric(OPPORTUNISTIC) > 0.0).tolist()
        self._seat_guaranteed(snapshot, floor, [at for at in order if not guest[at]])
        floor.make_room()
        arrival = jobs.arrival.tolist()
        for at in order:
            if at not in floor.owners and (guest[at] or now - arrival[at] >= self.patience - _SOON):
                floor.let_in(at, self.busy)
        due = now >= (snapshot.memory or {}).get("rise", -math.inf) - _SOON
        shares = self._shares(snapshot, floor, known, due)
        plan = [Assignment(at, devices=devices, mode=Mode.SPACE) for at, devices in floor.owners.items()]
        caps = floor.memory.caps(floor.owners, floor.guests) if floor.memory.counts else {}
        plan += [
            Assignment(at, devices=devices, mode=Mode.SPACE, fraction=shares[at].part, memory_cap=caps.get(at, math.inf))
            for at, devices in floor.guests.items()
        ]
        rise = (math.floor(now / self.interval + _SOON) + 1) * self.interval
        before = {at: known.get(str(jobs.rows[at]), share) for at, share in shares.items() if share.company}
        cut = any(share.part < before[at].part for at, share in shares.items() if at in before)
        tried = any(share.rises or share.part > before[at].part for at, share in shares.items() if at in before)
        wake = [now + _MINIBATCH] if cut else [rise] if tried else []
        wake += [arrival[at] + self.patience for at in order if not guest[at] and at not in floor.owners and at not in floor.guests]
        memory = {"rise": rise, "shares": {str(jobs.rows[at]): tuple(share) for at, share in shares.items()}}
        return Plan.assign(plan, valid_until=min((time for time in wake if time > now), default=math.inf), memory=memory)

    def _seat_guaranteed(self, snapshot: Snapshot, floor: Floor, order: list[int]) -> None:
        """In order of arrival, each as far as its user's quota goes."""
        gpus, user, quotas = snapshot.jobs.gpus.tolist(), snapshot.jobs.user.tolist(), self._quotas()
        names = snapshot.users
        held = dict.fromkeys(user, 0)
        for at in floor.owners:
            held[user[at]] += gpus[at]
        for at in order:
            bound = quotas.get(names[user[at]] if user[at] >= 0 else "", math.inf)
            if at not in floor.owners and held[user[at]] + gpus[at] <= bound:
                held[user[at]] += gpus[at]
                floor.seat(at)

    def _shares(self, snapshot: Snapshot, floor: Floor, known: dict[str, GuestShare], due: bool) -> dict[int, GuestShare]:
        """What each guest may use from now on."""
        rows, slowdown = snapshot.jobs.rows.tolist(), snapshot.jobs.metric(MINIBATCH).tolist()
        found = {}
        for at in floor.guests:
            hosts = floor.hosts(at)
            company = tuple((rows[host], round(floor.use[host], 2)) for host in hosts)
            before = known.get(str(rows[at]), GuestShare(self.step))
            share = before.after(company, [slowdown[host] for host in hosts], self.tolerance, self.step, due=due)
            found[at] = share if company else share._replace(part=1.0 / floor.company(at))
        return found

    def _quotas(self) -> dict[str, float]:
        found = {}
        for part in filter(None, self.quotas.split(",")):
            user, _, devices = part.partition("=")
            if not user.strip() or not devices.strip().isdigit():
                raise UsageError(
                    f"parameter 'quotas' has '{part}'", where="policy 'antman'", fix="give user=devices, such as alice=8,bob=16"
                )
            found[user.strip()] = float(devices)
        return found
