"""Committing grants that are more than a gang of its own: shared devices, exact devices, several parts, time shares.

Each gang is committed whole or not at all; one that cannot be is refused with a reason and the others are untouched. The order is fixed: first everybody
who gives something up, then those who shrink, then all others as the plan lists them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gantline.core import columns as c
from gantline.core.options import Option
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Assignments, Mode, Part
from gantline.core.reasons import Reason
from gantline.core.tables import Ints
from gantline.engine.assign import resize
from gantline.engine.gang import close_interval, give_back, halt, set_due, settle, start
from gantline.engine.log import L_COUNT
from gantline.placement import fit

if TYPE_CHECKING:
    from gantline.engine.state import State


@dataclass
class Grant:
    """What one row holds beyond a plain gang."""

    row: int
    assignment: Assignment
    devices: tuple[int, ...] = ()  # all of them, in rank order
    shared: bool = False  # devices are listed in `Grants.tenants` rather than owned
    members: frozenset[int] = frozenset()  # rows of its group
    extras: dict[int, tuple[float, float]] = field(default_factory=dict)  # node -> CPUs, GB of parts without devices
    fluid: float = 0.0  # devices' worth of a time share that no device in particular gives


class Grants:
    """Grants by row, and who shares which device."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.by_row: dict[int, Grant] = {}
        self.tenants: dict[int, list[int]] = {}
        self._interned: dict[Option, int] = {}
        self.used_fluid = False

    def __bool__(self) -> bool:
        return bool(self.by_row)

    # --- options ------------------------------------------------------------------------------------------------------
    def option_rows(self, rows: Ints, table: Assignments) -> Ints:
        """The row of the option table that each assignment means."""
        I = self.state.tables.I  # noqa: E741
        chosen = table.column("option")
        owner = rows[table.job]
        first = I[c.OPTION_FIRST][owner]
        if not (table.has("gpus") or table.has("type")):
            return np.asarray(first + np.maximum(chosen, 0), dtype=np.int64)
        gpus, kinds = table.column("gpus"), table.column("type")
        return np.array([self.option_row(int(r), int(o), int(g), int(k)) for r, o, g, k in zip(owner, chosen, gpus, kinds)], dtype=np.int64)

    def option_row(self, row: int, option: int, gpus: int, kind: int, cpus: float = math.nan, memory: float = math.nan) -> int:
        """An option of the job's own if one matches, else a new one whose speed follows the performance model."""
        t = self.state.tables
        first, count = int(t.I[c.OPTION_FIRST, row]), int(t.I[c.OPTION_COUNT, row])
        if option >= 0:
            base = first + option
        else:
            base = first
            for candidate in range(first, first + count):
                same_type = kind < 0 or t.options.I[c.O_TYPE, candidate] == kind
                if same_type and (gpus < 0 or t.options.I[c.O_GPUS, candidate] == gpus):
                    base = candidate
                    break
        way = t.options[base]
        want_gpus = way.gpus if gpus < 0 else gpus
        want_kind = way.type if kind < 0 else kind
        if want_gpus == way.gpus and want_kind == way.type and math.isnan(cpus) and math.isnan(memory):
            return base
        per = max(want_gpus, 1)
        model = t.performance
        if want_gpus == way.gpus and want_kind == way.type:
            rate = way.rate
        elif model is not None and hasattr(model, "rate"):
            rate = float(model.rate(t, row, want_kind, want_gpus))
        else:
            rate = way.rate * want_gpus / max(way.gpus, 1)  # no model: linear speed-up
        wanted = Option(
            want_kind,
            want_gpus,
            rate=rate,
            rate_spread=rate * ((way.rate_spread or way.rate) / way.rate) if way.rate else rate,
            cpus=way.cpus if math.isnan(cpus) else cpus / per,
            memory=way.memory if math.isnan(memory) else memory / per,
            nodes=0 if want_gpus != way.gpus else way.nodes,
        )
        if wanted not in self._interned:
            self._interned[wanted] = t.options.append(wanted)
        return self._interned[wanted]

    # --- commit -------------------------------------------------------------------------------------------------------
    def commit(self, rows: Ints, table: Assignments) -> None:
        """Make the active rows hold exactly what the plan says; state.out as in `assign`."""
        state, t = self.state, self.state.tables
        plan: dict[int, list[Assignment]] = {}
        for item in table:
            plan.setdefault(int(rows[item.job]), []).append(item)
        groups: dict[int, set[int]] = {}
        for row, items in plan.items():
            if items[0].group >= 0:
                groups.setdefault(items[0].group, set()).add(row)
        members = {row: frozenset(groups.get(items[0].group, ())) for row, items in plan.items()}
        stopped = 0
        for row in state.rows.tolist():
            if not Phase(int(t.I[c.PHASE, row])).holds_devices or t.I[c.LOCKED, row]:
                continue
            if row not in plan:
                if state.now >= t.F[c.LAST_START, row] + state.min_run:
                    self.stop(row, Reason.PREEMPTED)
                    stopped += 1
            elif not self._stays(row, plan[row], members[row]):
                self.stop(row, Reason.MOVED)
                stopped += 1
        started = refused = 0
        placed: dict[int, list[int]] = {}  # group -> devices of its members so far
        for row, items in plan.items():
            if items[0].group >= 0 and row in self.by_row:
                known = placed.setdefault(items[0].group, [])
                known += [d for d in self.by_row[row].devices if d not in known]
        for row, items in plan.items():
            if t.I[c.PHASE, row] != Phase.PENDING:
                self._adjust(row, items)
                continue
            reason = self._grant(row, items, members[row], placed)
            if reason is Reason.NONE:
                started += 1
            else:
                t.I[c.REASON, row] = int(reason)
                refused += 1
        self._refresh_rates()
        waiting = int((t.I[c.PHASE][state.rows] == Phase.PENDING).sum())
        state.out[:] = (started, stopped, waiting, refused)

    def stop(self, row: int, reason: Reason) -> None:
        """The row gives up what it holds, on purpose: its work is saved."""
        state, t = self.state, self.state.tables
        self._settle_fluid(row)
        self._release(row)
        give_back(*state.kernel_tables()[1:], row)
        halt(t.F, t.I, row, state.now, int(reason), state.SI, state.log.LI, state.log.LF)

    def forget_finished(self) -> None:
        """Give back what rows that have ended held beyond plain gangs."""
        for row in list(self.by_row):
            if not Phase(int(self.state.tables.I[c.PHASE, row])).holds_devices:
                self._settle_fluid(row)
                self._release(row)
        self._refresh_rates()

    def forget(self, row: int) -> None:
        """The row lost what it held (a node failed)."""
        self._release(row)
        self._refresh_rates()

    def _release(self, row: int) -> None:
        grant = self.by_row.pop(row, None)
        if grant is None:
            return
        t = self.state.tables
        for node, (cpus, memory) in grant.extras.items():
            t.NF[c.N_CPUS, node] += cpus
            t.NF[c.N_MEMORY, node] += memory
        for device in grant.devices if grant.shared else ():
            users = self.tenants[device]
            users.remove(row)
            if not users:
                del self.tenants[device]
                node = int(t.D[c.D_NODE, device])
                up = t.NI[c.N_UP, node] == 1
                t.D[c.D_HOLDER, device] = c.FREE if up else c.DOWN
                t.NI[c.N_FREE, node] += int(up)

    def _settle_fluid(self, row: int) -> None:
        grant = self.by_row.get(row)
        if grant is not None and grant.fluid:
            t = self.state.tables
            end = t.F[c.FINISH, row] if not math.isnan(t.F[c.FINISH, row]) else self.state.now
            t.F[c.GPUTIME, row] += grant.fluid * max(0.0, end - t.F[c.LAST_START, row])

    # --- who stays ----------------------------------------------------------------------------------------------------
    def _stays(self, row: int, items: list[Assignment], members: frozenset[int]) -> bool:
        """Whether what the row holds already is what the plan gives it (or can become so in place)."""
        t, item = self.state.tables, items[0]
        held = self.by_row.get(row)
        if (held.members if held else frozenset()) != members:
            return False
        if (held.fluid > 0 if held else False) != self._is_fluid(items):
            return False
        if item.parts:
            return held is not None and held.assignment.parts == item.parts
        if item.devices:
            return tuple(item.devices) == (held.devices if held and held.devices else self.devices(row))
        if item.nodes:
            return {int(t.D[c.D_NODE, d]) for d in self.devices(row)} <= set(item.nodes)
        if self._is_fluid(items):
            return held is not None and held.assignment == item
        option = self.option_row(row, item.option, item.gpus, item.type, item.cpus, item.memory)
        now = int(t.I[c.OPTION, row])
        if t.options.I[c.O_TYPE, now] != t.options.I[c.O_TYPE, option]:
            return False
        same_size = bool(t.options.I[c.O_GPUS, now] == t.options.I[c.O_GPUS, option])
        return same_size or not (held and held.shared)

    def _adjust(self, row: int, items: list[Assignment]) -> None:
        """Change in place what needs no restart (CPUs, batch, lease, share, offset) and resize what only changed its size."""
        state, t, item = self.state, self.state.tables, items[0]
        t.F[c.UNTIL, row] = min(item.until, state.now + item.limit)
        held = self.by_row.get(row)
        if held is not None:
            held.assignment = item
        if item.parts or item.devices or (held is not None and (held.fluid or held.shared)):
            return
        option = self.option_row(row, item.option, item.gpus, item.type, item.cpus, item.memory)
        now = int(t.I[c.OPTION, row])
        if option == now:
            return
        if t.options.I[c.O_GPUS, now] == t.options.I[c.O_GPUS, option]:
            self._change_side_demand(row, now, option)
            return
        log = state.log
        resize(
            *state.kernel_tables(), row, option, state.now, state.costs.resize, state.SI, log.LI, log.LF, log.LD, log.LN, state.scratch
        )

    def _change_side_demand(self, row: int, old: int, new: int) -> None:
        """CPUs and memory change without a restart, if every node of the gang has them (Synergy)."""
        t = self.state.tables
        counts: dict[int, int] = {}
        for device in self.devices(row):
            node = int(t.D[c.D_NODE, device])
            counts[node] = counts.get(node, 0) + 1
        more_cpus = t.options.F[c.O_CPUS, new] - t.options.F[c.O_CPUS, old]
        more_memory = t.options.F[c.O_MEMORY, new] - t.options.F[c.O_MEMORY, old]
        if any(t.NF[c.N_CPUS, k] + 1e-9 < more_cpus * m or t.NF[c.N_MEMORY, k] + 1e-9 < more_memory * m for k, m in counts.items()):
            return
        for node, count in counts.items():
            t.NF[c.N_CPUS, node] -= more_cpus * count
            t.NF[c.N_MEMORY, node] -= more_memory * count
        settle(t.F, t.I, row, self.state.now)
        t.I[c.OPTION, row] = new
        t.F[c.RATE, row] = t.options.F[c.O_RATE, new]
        set_due(t.F, row)

    # --- placing ------------------------------------------------------------------------------------------------------
    def _grant(self, row: int, items: list[Assignment], members: frozenset[int], placed: dict[int, list[int]]) -> Reason:
        """Place one gang whole, or say why not."""
        t, item = self.state.tables, items[0]
        if self._is_fluid(items):
            return self._grant_fluid(row, items)
        option = self.option_row(row, item.option, item.gpus, item.type, item.cpus, item.memory)
        extras: dict[int, tuple[float, float]] = {}
        if item.parts:
            found = self._place_parts(item.parts)
            if found is None:
                return Reason.RESOURCES
            devices, extras = found
            option = self.option_row(row, item.option, len(devices), item.type)
        elif item.devices:
            devices = list(item.devices)
        elif item.group >= 0 and item.mode != Mode.INTERLEAVE and placed.get(item.group):
            need = int(t.options.I[c.O_GPUS, option])
            devices = placed[item.group][:need]
            if len(devices) < need:
                more = self._choose(option, need - len(devices), item)
                if more is None:
                    return Reason.RESOURCES
                devices = devices + more
        else:
            chosen = self._choose(option, int(t.options.I[c.O_GPUS, option]), item)
            if chosen is None:
                free = int(t.NI[c.N_FREE][t.NI[c.N_TYPE] == t.options.I[c.O_TYPE, option]].sum())
                return Reason.FRAGMENTED if free >= t.options.I[c.O_GPUS, option] else Reason.RESOURCES
            devices = chosen
        sharing = item.group >= 0 and item.mode in (Mode.SPACE, Mode.TIME)
        if item.group >= 0 and item.mode == Mode.INTERLEAVE:
            sharing = any(t.D[c.D_HOLDER, d] == c.SHARED for d in devices) or not item.devices
        if not self._takeable(devices, sharing, members):
            return Reason.INFEASIBLE
        self._take(row, option, devices, sharing)
        if sharing or extras or item != Assignment(item.job, until=item.until):
            self.by_row[row] = Grant(row, item, tuple(devices), sharing, members, extras)
        for node, (cpus, memory) in extras.items():
            t.NF[c.N_CPUS, node] -= cpus
            t.NF[c.N_MEMORY, node] -= memory
        if item.group >= 0:
            known = placed.setdefault(item.group, [])
            known += [d for d in devices if d not in known]
        self._begin(row, item)
        return Reason.NONE

    def _begin(self, row: int, item: Assignment) -> None:
        state, t, log = self.state, self.state.tables, self.state.log
        start(t.F, t.I, t.options.F, t.options.I, t.NI, t.D, row, state.now, state.SI, state.SF, log.LI, log.LF, log.LD, log.LN)
        t.F[c.UNTIL, row] = min(item.until, state.now + item.limit)
        held = self.by_row.get(row)
        if held is not None and held.shared:  # the linked list is empty: log the shared devices here
            at = int(t.I[c.INTERVAL, row])
            log.reserve(8, len(held.devices))
            log.LD[log.LN[1] : log.LN[1] + len(held.devices)] = held.devices
            log.LN[1] += len(held.devices)
            log.LI[L_COUNT, at] = len(held.devices)

    def _takeable(self, devices: Sequence[int], sharing: bool, members: frozenset[int]) -> bool:
        D = self.state.tables.D
        for device in devices:
            if not 0 <= device < D.shape[1]:
                return False
            holder = int(D[c.D_HOLDER, device])
            if holder == c.FREE:
                continue
            if not (sharing and holder == c.SHARED and set(self.tenants[device]) <= members):
                return False
        return len(set(devices)) == len(devices)

    def _take(self, row: int, option: int, devices: Sequence[int], sharing: bool) -> None:
        t = self.state.tables
        t.I[c.OPTION, row] = option
        t.I[c.HELD, row] = len(devices)
        t.I[c.SPREAD, row] = len({int(t.D[c.D_NODE, d]) for d in devices})
        t.I[c.HEAD, row] = -1
        last = -1
        for device in devices:
            node = int(t.D[c.D_NODE, device])
            if t.D[c.D_HOLDER, device] == c.FREE:
                t.NI[c.N_FREE, node] -= 1
            if sharing:
                t.D[c.D_HOLDER, device] = c.SHARED
                self.tenants.setdefault(device, []).append(row)
                continue
            t.NF[c.N_CPUS, node] -= t.options.F[c.O_CPUS, option]
            t.NF[c.N_MEMORY, node] -= t.options.F[c.O_MEMORY, option]
            t.D[c.D_HOLDER, device] = row
            t.D[c.D_NEXT, device] = -1
            if last < 0:
                t.I[c.HEAD, row] = device
            else:
                t.D[c.D_NEXT, last] = device
            last = device

    def _choose(self, option: int, need: int, item: Assignment) -> list[int] | None:
        """Devices by the placement rule, within the nodes the assignment allows."""
        state, t = self.state, self.state.tables
        if need == 0:
            return []
        NI = t.NI
        if item.nodes:
            NI = t.NI.copy()
            outside = np.ones(NI.shape[1], dtype=bool)
            outside[list(item.nodes)] = False
            NI[c.N_FREE, outside] = 0
        rule = int(state.placement.rule)
        if item.within == "node":
            rule = fit.CONSOLIDATED if item.required else fit.PREFERRED
        nodes, counts = state.scratch[0], state.scratch[1]
        spread = int(t.options.I[c.O_NODES, option]) if need == t.options.I[c.O_GPUS, option] else 0
        for block in self._racks(NI) if item.within == "rack" else [NI]:
            used = fit.choose(
                t.NF, block, int(t.options.I[c.O_TYPE, option]), need, spread, float(t.options.F[c.O_CPUS, option]),
                float(t.options.F[c.O_MEMORY, option]), rule, state.placement.whole, False, state.seed + state.decision, False, nodes, counts,
            )  # fmt: skip
            if used:
                return self._pick(nodes[:used].tolist(), counts[:used].tolist())
        if item.within == "rack" and not item.required:
            from dataclasses import replace

            return self._choose(option, need, replace(item, within=""))
        return None

    def _racks(self, NI: Ints) -> list[Ints]:
        """One view of the nodes per rack, the others masked."""
        views = []
        for rack in np.unique(NI[c.N_RACK]).tolist():
            view = NI.copy()
            view[c.N_FREE, NI[c.N_RACK] != rack] = 0
            views.append(view)
        return views

    def _pick(self, nodes: list[int], counts: list[int]) -> list[int]:
        t = self.state.tables
        devices: list[int] = []
        for node, count in zip(nodes, counts):
            first, size = int(t.NI[c.N_FIRST, node]), int(t.NI[c.N_GPUS, node])
            free = np.flatnonzero(t.D[c.D_HOLDER, first : first + size] == c.FREE)[:count]
            devices += [first + int(k) for k in free]
        return devices

    def _place_parts(self, parts: Sequence[Part]) -> tuple[list[int], dict[int, tuple[float, float]]] | None:
        """Devices and side demands of a grant with several roles."""
        t = self.state.tables
        devices: list[int] = []
        cpus_free, memory_free = t.NF[c.N_CPUS].copy(), t.NF[c.N_MEMORY].copy()
        free = {int(d) for d in np.flatnonzero(t.D[c.D_HOLDER] == c.FREE)}
        extras: dict[int, tuple[float, float]] = {}
        for part in parts:
            exact = iter(part.devices)
            for worker in range(part.count):
                allowed = [part.nodes[worker]] if worker < len(part.nodes) else range(t.NI.shape[1])
                for node in allowed:
                    if t.NI[c.N_UP, node] == 0 or t.NI[c.N_TYPE, node] != part.type:
                        continue
                    first, size = int(t.NI[c.N_FIRST, node]), int(t.NI[c.N_GPUS, node])
                    mine = [next(exact) for _ in range(part.gpus)] if part.devices else [d for d in range(first, first + size) if d in free][: part.gpus]
                    if len(mine) == part.gpus and set(mine) <= free and cpus_free[node] + 1e-9 >= part.cpus and memory_free[node] + 1e-9 >= part.memory:
                        break
                else:
                    return None
                free -= set(mine)
                devices += mine
                cpus_free[node] -= part.cpus
                memory_free[node] -= part.memory
                had = extras.get(node, (0.0, 0.0))
                extras[node] = (had[0] + part.cpus, had[1] + part.memory)
        return devices, extras

    # --- time shares --------------------------------------------------------------------------------------------------
    @staticmethod
    def _is_fluid(items: list[Assignment]) -> bool:
        return items[0].mode == Mode.EXCLUSIVE and (len(items) > 1 or items[0].share < 1.0)

    def _grant_fluid(self, row: int, items: list[Assignment]) -> Reason:
        """A share of the time on each of several types, as an ideal mechanism would give it: no device in particular."""
        state, t = self.state, self.state.tables
        capacity = np.bincount(t.NI[c.N_TYPE], weights=t.NI[c.N_GPUS] * t.NI[c.N_UP], minlength=len(t.cluster.types))
        for grant in self.by_row.values():
            for kind, amount in self._fluid_use(grant.row, grant.assignment if isinstance(grant.assignment, list) else [grant.assignment]):
                capacity[kind] -= amount
        rate = total = 0.0
        for item in items:
            option = self.option_row(row, item.option, item.gpus, item.type)
            kind, gpus = int(t.options.I[c.O_TYPE, option]), int(t.options.I[c.O_GPUS, option])
            if item.share * gpus > capacity[kind] + 1e-6:
                return Reason.RESOURCES
            capacity[kind] -= item.share * gpus
            rate += item.share * t.options.F[c.O_RATE, option]
            total += item.share * gpus
        t.I[c.OPTION, row] = self.option_row(row, items[0].option, items[0].gpus, items[0].type)
        t.I[c.HELD, row], t.I[c.HEAD, row], t.I[c.SPREAD, row] = 0, -1, 0
        self.used_fluid = True
        self.by_row[row] = Grant(row, items[0], fluid=max(total, 1e-12))
        self._begin(row, items[0])
        t.F[c.RATE, row] = rate
        set_due(t.F, row)
        return Reason.NONE

    def _fluid_use(self, row: int, items: list[Any]) -> list[tuple[int, float]]:
        t = self.state.tables
        grant = self.by_row[row]
        return [(int(t.options.I[c.O_TYPE, int(t.I[c.OPTION, row])]), grant.fluid)] if grant.fluid and items else []

    # --- speeds -------------------------------------------------------------------------------------------------------
    def _refresh_rates(self) -> None:
        """Speeds of those who share follow the whole group: the performance model says how fast, else the share does."""
        t, state = self.state.tables, self.state
        for row, grant in self.by_row.items():
            if grant.fluid or t.I[c.PHASE, row] != Phase.RUNNING:
                continue
            option = int(t.I[c.OPTION, row])
            alone = float(t.options.F[c.O_RATE, option])
            item = grant.assignment
            mates = [m for m in grant.members if m != row and m in self.by_row]
            model = t.performance
            if mates and model is not None and hasattr(model, "shared_rate"):
                rate = float(model.shared_rate(t, row, mates, option, item))
            elif grant.shared and item.mode == Mode.TIME:
                rate = alone * item.share
            else:
                rate = alone * item.fraction
            if rate != t.F[c.RATE, row]:
                settle(t.F, t.I, row, state.now)
                t.F[c.RATE, row] = rate
                set_due(t.F, row)

    def devices(self, row: int) -> tuple[int, ...]:
        """Devices of a row, owned or shared, in rank order."""
        grant = self.by_row.get(row)
        if grant is not None and grant.shared:
            return grant.devices
        t = self.state.tables
        device, held = int(t.I[c.HEAD, row]), []
        while device >= 0:
            held.append(device)
            device = int(t.D[c.D_NEXT, device])
        return tuple(held)


def close_open_intervals(state: State) -> None:
    """At the end of a run: whoever still holds devices does so until now."""
    t, log = state.tables, state.log
    for row in state.rows.tolist():
        if t.I[c.INTERVAL, row] >= 0:
            settle(t.F, t.I, row, state.now)
            close_interval(t.I, row, state.now, int(Reason.END), log.LI, log.LF)
