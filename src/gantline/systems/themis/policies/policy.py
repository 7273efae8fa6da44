"""`themis`: the devices whose lease is over go to the apps that are worst off, by auction (Mahajan et al., NSDI 2020)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.phases import PENDING
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.rng import stream
from gantline.core.snapshot import Snapshot
from gantline.policies.drawn_places import moved, other_places
from gantline.policies.elastic.pools import Pool, by_node, exact_options, may_share, pools
from gantline.systems.themis.policies.auction import (
    AuctionOutcome,
    Bid,
    Bundle,
    Nodes,
    Offer,
    allocation_by_lot,
    app_rho,
    bid_table,
    fair_split,
    partial_allocation,
    placements,
)
from gantline.systems.themis.policies.standing import Standing, standing

# What the auction leaves is handed out, so that nothing idles: to jobs that are there already, then by lot.
#
# Hidden payments alone keep a third to a half of an offer back, so without this step devices would stand idle.


@dataclass
class Leftovers:
    """Devices while they are handed out: which job has which, and what is left on each node."""

    before: dict[int, tuple[int, ...]]  # job -> devices that it holds until now
    sits_on: dict[int, Nodes]  # job -> how many of these are on each node
    sits: list[int]  # device -> the job that holds it; -1: none
    left: dict[int, list[int]]  # node -> devices that are not given to a job; a node without any may be missing
    given: dict[int, Sequence[int]]
    given_on: dict[int, Nodes]  # job -> how many it was given on each node

    @staticmethod
    def of(pool: Pool, leases: Container[str]) -> Leftovers:
        """The devices of a pool; jobs with a lease, named by their rows, have what they hold, and no other is given yet."""
        jobs, node, left = pool.snapshot.jobs, pool.snapshot.cluster.device_node.tolist(), may_share(pool)
        there = np.flatnonzero(pool.of(jobs.phase) != PENDING).tolist()
        holds = {job: jobs.devices(int(pool.jobs[job])) for job in there}
        before = {job: devices for job, devices in holds.items() if devices and left[list(devices)].all()}  # all are to be shared
        sits, rows = [-1] * len(left), pool.of(jobs.rows).tolist()
        for job, devices in before.items():
            for device in devices:
                sits[device] = job
        sits_on: dict[int, Nodes] = {job: Counter(node[device] for device in devices) for job, devices in before.items()}
        given: dict[int, Sequence[int]] = {job: devices for job, devices in before.items() if str(rows[job]) in leases}
        left[[device for devices in given.values() for device in devices]] = False
        free = by_node(pool.snapshot, np.flatnonzero(left))
        return Leftovers(before, sits_on, sits, free, given, {job: sits_on[job] for job in given})

    def room(self) -> Nodes:
        """How many are left on each node."""
        return {node: len(devices) for node, devices in self.left.items()}

    def give(self, job: int, nodes: Nodes) -> None:
        """So many devices on each node: its own first, then those that no job holds, then any."""
        sits, given, on = self.sits, list(self.given.get(job, ())), dict(self.given_on.get(job, {}))
        self.given[job], self.given_on[job] = given, on
        for node, count in nodes.items():
            left = self.left[node]
            on[node] = on.get(node, 0) + count
            if count == len(left):
                given += left
                left.clear()
                continue
            order = sorted(left, key=lambda device: (sits[device] != job) + (sits[device] not in (job, -1)))
            given += order[:count]
            self.left[node] = sorted(order[count:])


def hand_out(table: Leftovers, standing: Standing, offer: Offer, rng: np.random.Generator) -> None:
    """Jobs whose lease is over stay where they are; jobs grow on their own machines; the rest is given by lot."""
    waiting = [job for job in range(len(standing.pool)) if job not in table.given]
    room = table.room()
    for job in [job for job in waiting if job in table.before]:
        nodes = table.sits_on[job]
        if all(room.get(node, 0) >= count for node, count in nodes.items()):
            table.give(job, nodes)
            room |= {node: len(table.left[node]) for node in nodes}
    beside = {node for node, devices in table.left.items() if devices}
    growing = [job for job in table.given if not beside.isdisjoint(table.given_on[job])]  # the others have no room to grow into
    for job in sorted(growing, key=lambda job: -standing.rho(job, standing.rate(job, table.given_on[job]))):
        _grow(table, standing, job)
    rest = [job for job in waiting if job not in table.given]
    room = {node: count for node, count in table.room().items() if count}
    free = sum(room.values())
    for place in rng.permutation(len(rest)).tolist():
        job = rest[place]
        sizes = standing.sizes(job)
        for size in reversed(sizes[: bisect_right(sizes, min(standing.asked_size(job), free))]):
            nodes = next(placements(size, room, offer, job, 0), {})
            if nodes:
                table.give(job, nodes)
                free -= size
                for node in nodes:
                    room[node] = len(table.left[node])
                    if not room[node]:
                        del room[node]
                break


def _grow(table: Leftovers, standing: Standing, job: int) -> None:
    """To the next sizes, while the machines that the job is on have room."""
    have = len(table.given[job])
    for size in [size for size in standing.sizes(job) if size > have]:
        here = table.given_on[job]
        missing, more = size - sum(here.values()), {}
        for node in sorted(here, key=lambda node: -len(table.left.get(node, ()))):
            more[node] = min(len(table.left.get(node, ())), missing)
            missing -= more[node]
        wider = {node: count + more[node] for node, count in here.items()}
        if missing or standing.rate(job, wider) <= standing.rate(job, here):
            return
        table.give(job, {node: count for node, count in more.items() if count})


# `themis`: the devices whose lease is over go to the apps that are worst off, by auction (Mahajan et al., NSDI 2020).

_PAYMENTS = ("lottery", "floor", "none")
_OF_APP = ("mean", "best")


@dataclass(frozen=True)
class Themis(Policy):
    """The worst-off apps bid for devices lease by lease; hidden payments make the truth the best bid; leftovers are handed out."""

    name = "themis"
    names_devices = True
    paper = "Mahajan et al.: Themis: Fair and Efficient GPU Cluster Scheduling (NSDI 2020)"
    needs = frozenset({"remaining"})

    f: float = parameter(0.8, "the worst-off 1 - f of the apps may bid: 1 is fairest, with 0 all bid", low=0.0, high=1.0, unit="a part")
    lease: float = parameter(
        1200.0, "seconds after which devices are auctioned again; leases end together", above=0.0, finite=True, unit="seconds"
    )
    payment: str = parameter(
        "lottery", "what is not kept: 'lottery' (all or nothing, by chance), 'floor' (whole devices), 'none'", one_of=_PAYMENTS
    )
    most_bidders: int = parameter(32, "bidders at most, the worst off: the exact split takes long with more", low=1)
    of_app: str = parameter("mean", "an app of several jobs stands as they do on average ('mean') or as its 'best'", one_of=_OF_APP)

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        epoch = math.floor(snapshot.now / self.lease + 1e-9)
        until = (epoch + 1) * self.lease
        found = list(pools(snapshot))
        cause = [epoch, snapshot.jobs.rows.tolist(), snapshot.cluster.capacity.tolist(), [[p.kind, *p.jobs.tolist()] for p in found]]
        if memory.get("cause") == cause:
            return _plan(snapshot, found, memory["given"], until, memory)
        number = int(memory.get("auctions", 0)) + 1
        lots = (
            int(memory["lots"]) if "lots" in memory else int(snapshot.rng("themis").integers(1 << 62))
        )  # seeded by the auction, not by the call
        given: dict[str, list[int]] = {}
        stands: list[dict[str, Floats | Ints]] = []
        leases = memory.get("given", {}) if memory.get("epoch") == epoch else {}
        for pool in found:
            table, kept = self._auction(pool, leases, memory, until, stream(lots, number, f"themis/{pool.kind}"))
            stands.append(kept)
            rows = pool.of(snapshot.jobs.rows).tolist()
            given |= {str(rows[job]): sorted(devices) for job, devices in table.given.items()}
        stood = {name: np.concatenate([kept[name] for kept in stands]) for name in stands[0]} if stands else {}
        remembered = {"cause": cause, "epoch": epoch, "auctions": number, "lots": lots, "given": given, "standing": stood}
        return _plan(snapshot, found, given, until, remembered)

    def alternatives(self, snapshot: Snapshot, plan: Plan, count: int) -> list[Plan]:
        """The leases that this auction gave, on other devices; those in force stay where they are."""
        before, now = snapshot.memory or {}, plan.memory
        if before.get("cause") == now["cause"]:
            return []  # nothing was auctioned
        in_force = before.get("given", {}) if before.get("epoch") == now["epoch"] else {}
        names = {job: str(row) for job, row in enumerate(snapshot.jobs.rows.tolist())}
        fresh = [job for job, name in names.items() if name in now["given"] and name not in in_force]
        return [
            replace(moved(plan, places), memory=now | {"given": now["given"] | {names[job]: list(held) for job, held in places.items()}})
            for places in other_places(snapshot, plan, fresh, count)
        ]

    def _auction(
        self, pool: Pool, leases: dict[str, list[int]], memory: dict[str, Any], until: float, rng: np.random.Generator
    ) -> tuple[Leftovers, dict[str, Floats | Ints]]:
        """Which job has which devices until the leases end: leases in force, winners, then leftovers."""
        snapshot = pool.snapshot
        stand, kept = standing(pool, memory, until - snapshot.now)
        table = Leftovers.of(pool, leases)
        room = {node: count for node, count in table.room().items() if count}
        if not room:
            return table, kept  # all is leased: nothing to bid for
        own = {k: nodes for k, nodes in table.sits_on.items() if k not in table.given}
        idle = Counter(room)
        for nodes in own.values():
            idle.subtract(nodes)
        offer = Offer(room, idle, own, snapshot.cluster.node_rack.tolist())
        for job, nodes in self._winners(stand, table, offer, rng).items():
            table.give(job, nodes)
        hand_out(table, stand, offer, rng)
        return table, kept

    def _winners(self, stand: Standing, table: Leftovers, offer: Offer, rng: np.random.Generator) -> Bundle:
        """The auction: the jobs that are worst off bid, and keep what the hidden payment leaves."""
        members: list[list[int]] = [[] for _ in range(stand.apps)]
        for job, app in enumerate(stand.app.tolist()):
            members[app].append(job)
        present = stand.rates(table.given_on | offer.own)
        rates = {job: present[job] for job in table.given_on}  # of leases in force
        wanting = [[job for job in mine if job not in rates and stand.sizes(job)] for mine in members]
        able = [app for app in range(stand.apps) if wanting[app]]
        rho = [app_rho(stand, mine, present, self.of_app) for mine in members]
        count = min(max(math.ceil((1.0 - self.f) * len(able) - 1e-9), 1), self.most_bidders)
        bidders = sorted(able, key=lambda app: (-rho[app], app))[:count]
        tables = [bid_table(stand, members[app], wanting[app], rates, offer, turn, self.of_app) for turn, app in enumerate(bidders)]
        lots: Floats = rng.random(len(tables))
        outcome = self._paid([each.bid for each in tables], np.array(list(offer.devices.values()), dtype=np.int64), lots)
        won: Bundle = {}
        for each, row, keep in zip(tables, outcome.row.tolist(), outcome.keep.tolist()):
            if row >= 0 and keep > 0.0:
                won |= self._kept(stand, each.bundles[row], keep)
        return won

    def _paid(self, bids: list[Bid], offer: Ints, lots: Floats) -> AuctionOutcome:
        """Which rows win, and what winners keep of them."""
        if self.payment == "none":
            return AuctionOutcome(fair_split(bids, offer), np.ones(len(bids)))
        return allocation_by_lot(bids, offer, lots) if self.payment == "lottery" else partial_allocation(bids, offer)

    def _kept(self, stand: Standing, bundle: Bundle, keep: float) -> Bundle:
        """What a winner keeps of its bundle, in whole devices."""
        if keep >= 1.0:
            return bundle
        found: Bundle = {}
        allowed = math.floor(keep * sum(sum(nodes.values()) for nodes in bundle.values()) + 1e-9)
        for job, nodes in bundle.items():
            size = max((size for size in stand.sizes(job) if size <= min(allowed, sum(nodes.values()))), default=0)
            allowed -= size
            part: dict[int, int] = {}
            for node in sorted(nodes, key=lambda node: -nodes[node]):
                if size > 0:
                    part[node] = min(nodes[node], size)
                    size -= part[node]
            if part:
                found[job] = part
        return found


def _plan(snapshot: Snapshot, found: list[Pool], given: dict[str, list[int]], until: float, memory: dict[str, Any]) -> Plan:
    """Leases on exactly these devices; a job that wants no devices runs as it asks."""
    rows: list[tuple[int, int, int, int, tuple[int, ...], float]]
    rows = [(job, 0, -1, -1, (), math.inf) for job in np.flatnonzero(snapshot.jobs.gpus == 0).tolist()]
    for pool in found:
        leases = [tuple(given.get(str(row), ())) for row in pool.of(snapshot.jobs.rows).tolist()]
        option = exact_options(pool, np.array([len(lease) for lease in leases], dtype=np.int64)).tolist()
        rows += [(*each, pool.kind, len(lease), lease, until) for *each, lease in zip(pool.jobs.tolist(), option, leases) if lease]
    job, options, kind, gpus, devices, ends = zip(*rows) if rows else ((),) * 6
    assigned = Assignments(job, option=options, gpus=gpus, type=kind, devices=devices, until=ends)
    return Plan.assign(assigned, valid_until=until, memory=memory)
