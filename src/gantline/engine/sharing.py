"""Gangs that share devices: rows that are together stay, the others join, and only missing devices are taken anew."""

from __future__ import annotations

from collections.abc import Mapping

from gantline.core.columns import Device, Node, Option
from gantline.engine.device_memory import DeviceMemory
from gantline.engine.holdings import Holdings
from gantline.engine.placing import choose_devices, extend
from gantline.engine.state import State
from gantline.engine.wanted import Wanted


class Claims:
    """Which row stays on which shared device in one commit. Two may stay together only if the plan allows it to both of them."""

    def __init__(self, holdings: Holdings, changing: set[int]) -> None:
        self._stay: dict[int, dict[int, frozenset[int] | None]] = {}
        for device in {device for row in changing if holdings.shares(row) for device in holdings.of(row).devices}:
            self._stay[device] = {
                row: None for row in holdings.tenants(device) if row not in changing
            }  # they stay with any gang that is there

    def claim(self, w: Wanted, devices: tuple[int, ...]) -> bool:
        """The row stays on these devices, if each row that stays there may share with it."""
        company = w.company if w.shares else frozenset({w.row})
        for device in devices:
            for other, theirs in self._stay.get(device, {}).items():
                if other not in company or (theirs is not None and w.row not in theirs):
                    return False
        for device in devices:
            self._stay.setdefault(device, {})[w.row] = company
        return True


class Pools:
    """Per group of one plan: the devices that its members share so far."""

    def __init__(self, state: State, holdings: Holdings, memory: DeviceMemory) -> None:
        self.state, self.holdings, self.memory = state, holdings, memory
        self._pools: dict[frozenset[int], list[int]] = {}

    def settle_in(self, wanted: Mapping[int, Wanted], holding: set[int], claims: Claims) -> set[int]:
        """Members that may stay where they are, the widest gang first: each lies within what the others have, or around it."""
        OI = self.state.tables.options.I
        runners = [w for w in wanted.values() if w.pooled and w.sound and w.row in holding]
        staying: set[int] = set()
        for w in sorted(runners, key=lambda w: -int(OI[Option.GPUS, w.option])):
            held = self.holdings.of(w.row)
            same_type = bool(OI[Option.TYPE, held.option] == OI[Option.TYPE, w.option])
            pool = self._pools.setdefault(w.company, [])
            both = set(held.devices) | set(pool)
            inside = len(both) in (len(pool), len(held.devices)) or len(both) <= w.item.size
            if same_type and len(held.devices) == OI[Option.GPUS, w.option] and inside and claims.claim(w, held.devices):
                staying.add(w.row)
                self.add(w, held.devices)
        return staying

    def of(self, w: Wanted) -> list[int]:
        """The devices of its group so far."""
        return list(self._pools.get(w.company, ()))

    def restore(self, w: Wanted, devices: list[int]) -> None:
        """Its group has these devices again."""
        self._pools[w.company] = devices

    def add(self, w: Wanted, devices: tuple[int, ...]) -> None:
        """These devices are the group's from now on."""
        pool = self._pools.setdefault(w.company, [])
        pool += [device for device in devices if device not in pool]

    def find(self, w: Wanted) -> list[int] | None:
        """Devices for a member: the least crowded ones of the group, and free ones where it has too few."""
        t = self.state.tables
        need, kind = int(t.options.I[Option.GPUS, w.option]), int(t.options.I[Option.TYPE, w.option])
        mine = [d for d in self._pools.get(w.company, ()) if t.NI[Node.TYPE, t.D[Device.NODE, d]] == kind]
        usable = [d for d in mine if self.holdings.is_open(d) and not self.memory.lacking(w.row, (d,))]
        if w.item.nodes:
            usable = [d for d in usable if int(t.D[Device.NODE, d]) in w.item.nodes]
        if w.item.size > len(usable):
            wider = self._widen(w, usable, need)
            if wider is not None:
                return wider
        if len(usable) >= need:
            quiet = sorted(usable, key=lambda d: len(self.holdings.tenants(d)))[:need]
            return [d for d in usable if d in quiet]
        if not usable:
            return choose_devices(self.state, w.row, w.option, w.item)
        return self._more(w, usable, need)

    def _widen(self, w: Wanted, usable: list[int], need: int) -> list[int] | None:
        """The group has not all the devices yet that it is to share: idle ones of its own first, then free ones, before members stack."""
        idle = [d for d in usable if not self.holdings.tenants(d)][:need]
        fresh = min(need - len(idle), w.item.size - len(usable))
        if fresh + len(idle) < need:
            return None
        if not idle:
            return choose_devices(self.state, w.row, w.option, w.item) if fresh else None
        return idle if fresh == 0 else self._more(w, idle, need)

    def _more(self, w: Wanted, devices: list[int], need: int) -> list[int] | None:
        return extend(self.state, w.row, w.option, devices, need, w.item)
