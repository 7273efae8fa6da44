"""Which devices exactly, for placement rules that look at single devices: the walk counts, and this module chooses.

A rule that picks devices places a gang wherever enough of them are free, so whether a gang fits is a matter of counting, and the compiled
walk answers that. What it started at this instant is then moved to the devices that the rule picks, before anything has happened there.
Unless the rule is sticky, gangs that ran before are placed anew with the others: those that change devices pay for a move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import FREE, HOST_RESOURCES, Option
from gantline.core.phases import RUNNING, STARTING
from gantline.engine.gang import begin, settle
from gantline.engine.grants import Grants
from gantline.engine.holdings import Holding
from gantline.engine.log import Interval
from gantline.engine.runs import note_saves
from gantline.models.placement_speeds import VariableDevices
from gantline.policies.placement.device_rule import FreeDevices, GangRequest, PlacementError, chosen_devices
from gantline.policies.placement.rules import PlacementRule


class MovedGangs(NamedTuple):
    """Rows that got other devices, and rows that the rule makes wait."""

    moved: Ints
    waits: Ints


class DeviceRules:
    """Places gangs after a commit; rows with a grant that names devices, nodes or a group are left alone."""

    def __init__(self, grants: Grants, rule: PlacementRule) -> None:
        self.grants, self.rule = grants, rule
        self.state, self.t, self.holdings = grants.state, grants.state.tables, grants.holdings

    def settle_in(self) -> MovedGangs:
        """Place the gangs that may be placed; a choice that cannot be, or a gang that is to wait, moves none.

        They are placed in order of arrival, so that the same gangs always sit in the same places, however ranks move meanwhile.
        """
        if (self.t.options.F[Option.CPUS : Option.CPUS + HOST_RESOURCES] > 0.0).any():
            what = "picks devices and does not count CPUs, memory and storage, which jobs of this run ask for"
            raise PlacementError(what, where=f"placement '{self.rule.name}'")
        rows = [int(row) for row in np.sort(self.state.running_rows) if self._may_sit_elsewhere(int(row))]
        held = {row: self.holdings.chain(row) for row in rows}
        free: dict[int, list[int]] = {}
        for device in np.flatnonzero(self.t.devices.holder == FREE).tolist():
            free.setdefault(self._type(device), []).append(device)
        for devices in held.values():
            for device in devices:
                free.setdefault(self._type(device), []).append(device)
        free = {kind: sorted(devices) for kind, devices in free.items()}
        chosen: dict[int, tuple[int, ...]] = {}
        rule, node = self.rule.device_rule, self.t.devices.node.tolist()
        assert rule is not None
        gangs, waits = self._gangs(held), list[int]()
        for row in sorted(rows, key=lambda row: rule.turn(gangs[row])):
            room = free[self._type(held[row][0])]
            found = chosen_devices(self.rule.name, rule, gangs[row], FreeDevices(tuple(room), node))
            if found is None:
                waits.append(row)
                continue
            taken = set(found)
            room[:] = [device for device in room if device not in taken]
            stays = taken == set(held[row]) and not (rule.ordered and self._just_begun(row))
            chosen[row] = held[row] if stays else found
        if waits:
            return MovedGangs(self.state.rows[:0], np.array(waits, dtype=np.int64))
        return MovedGangs(self._move({row: devices for row, devices in chosen.items() if devices != held[row]}), self.state.rows[:0])

    def _gangs(self, held: dict[int, tuple[int, ...]]) -> dict[int, GangRequest]:
        """What the rule receives about each gang."""
        t, seed = self.t, self.state.seed * 1000003
        classes = t.performance.classes if isinstance(t.performance, VariableDevices) else {}
        gains = t.metrics.get("bw_sensitive")
        found = {}
        for row, devices in held.items():
            name, model, before = t.ids[row], t.models[t.jobs.model[row]], () if self._just_begun(row) else devices
            drawn = seed + int(t.jobs.epoch[row]) * 8191 + row
            found[row] = GangRequest(
                name, len(devices), model, classes.get(name, ""), before, drawn, bool(gains is None or gains[row] != 0.0)
            )
        return found

    def _may_sit_elsewhere(self, row: int) -> bool:
        t = self.t
        if t.jobs.phase[row] not in (STARTING, RUNNING) or t.jobs.head[row] < 0 or row in self.grants.by_row:
            return False
        if self._just_begun(row):
            return True
        return not (self.rule.sticky or t.jobs.locked[row])

    def _just_begun(self, row: int) -> bool:
        at = int(self.t.jobs.interval[row])
        return bool(at >= 0 and self.state.log.LF[Interval.START, at] == self.state.now)

    def _move(self, places: dict[int, tuple[int, ...]]) -> Ints:
        """All of them leave, then each takes its place."""
        state, t = self.state, self.t
        fresh = {row for row in places if self._just_begun(row)}
        before: dict[int, Holding] = {}
        for row in places:
            if row not in fresh:
                note_saves(state, row)
                settle(t.F, t.I, row, state.now)
            before[row] = self.holdings.of(row)
            self.holdings.give_back(row)
        acts = {}
        for row, devices in places.items():
            option, had = before[row].option, len(before[row].devices)
            self.holdings.take(row, Holding(option, devices))
            if row in fresh:
                first = int(state.log.LI[Interval.OFFSET, t.jobs.interval[row]])
                state.log.LD[first : first + len(devices)] = devices
            else:
                state.log.reserve(8, t.D.shape[1] + 8)
                acts[row] = begin(state.matrices, row, option, had, False, False, state.now, state.rules, 0.0, state.log.columns)
        if self.grants.speeds.about_costs and acts:
            self.grants.speeds.pay(np.array(list(acts)), np.array(list(acts.values())))
        return np.array(sorted(places), dtype=np.int64)

    def _type(self, device: int) -> int:
        return int(self.t.nodes.type[self.t.devices.node[device]])
