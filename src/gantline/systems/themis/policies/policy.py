"""`themis`: the devices whose lease is over go to the apps that are worst off, by auction (Mahajan et al., NSDI 2020)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy
from gantline.core.rng import stream
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.drawn_places import moved, other_places
from gantline.policies.elastic.pools import Pool, exact_options, pools
from gantline.systems.themis.policies.auction import AuctionOutcome, Bid, allocation_by_lot, fair_split, partial_allocation
from gantline.systems.themis.policies.bids import Bundle, Offer, bid_table
from gantline.systems.themis.policies.leftovers import Leftovers, hand_out
from gantline.systems.themis.policies.standing import Standing, standing

_PAYMENTS = ("lottery", "floor", "none")
_OF_APP = ("mean", "best")


@dataclass(frozen=True)
class Themis(Policy):
    """The worst-off apps bid for devices lease by lease; hidden payments make the truth the best bid; leftovers are handed out."""

    name: ClassVar[str] = "themis"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = "Mahajan et al.: Themis: Fair and Efficient GPU Cluster Scheduling (NSDI 2020)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    f: float = field(
        default=0.8,
        metadata=about("the worst-off 1 - f of the apps may bid: 1 is fairest, with 0 all bid", low=0.0, high=1.0, unit="a part"),
    )
    lease: float = field(
        default=1200.0,
        metadata=about("seconds after which devices are auctioned again; leases end together", above=0.0, finite=True, unit="seconds"),
    )
    payment: str = field(
        default="lottery",
        metadata=about("what is not kept: 'lottery' (all or nothing, by chance), 'floor' (whole devices), 'none'", one_of=_PAYMENTS),
    )
    most_bidders: int = field(default=32, metadata=about("bidders at most, the worst off: the exact split takes long with more", low=1))
    of_app: str = field(
        default="mean", metadata=about("an app of several jobs stands as they do on average ('mean') or as its 'best'", one_of=_OF_APP)
    )

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
        rho = stand.rhos(present, self.of_app)
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
    job = [np.flatnonzero(snapshot.jobs.gpus == 0)]
    devices: list[tuple[int, ...]] = [()] * len(job[0])
    option, kind, gpus = [np.zeros(len(job[0]), np.int64)], [np.full(len(job[0]), -1)], [np.full(len(job[0]), -1)]
    for pool in found:
        leases = [tuple(given.get(str(row), ())) for row in pool.of(snapshot.jobs.rows).tolist()]
        size = np.fromiter(map(len, leases), dtype=np.int64, count=len(leases))
        some = np.flatnonzero(size)
        devices += filter(None, leases)
        job.append(pool.jobs[some])
        option.append(exact_options(pool, size)[some])
        gpus.append(size[some])
        kind.append(np.full(len(some), pool.kind))
    sizes = np.concatenate(gpus)
    lease = np.where(sizes > 0, until, math.inf)
    of_job, of_kind = np.concatenate(job), np.concatenate(kind)
    assigned = Assignments(of_job, option=np.concatenate(option), gpus=sizes, type=of_kind, devices=devices, until=lease)
    return Plan.assign(assigned, valid_until=until, memory=memory)
