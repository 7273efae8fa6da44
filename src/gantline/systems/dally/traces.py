"""Jobs that slow down where they cross machines and racks: the columns that say so, and a generator of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError
from gantline.models.placement_speeds import PlacementTiers
from gantline.traces.generators.generic import generic
from gantline.traces.generators.given import fault, number, read_given
from gantline.traces.trace import Trace

# Slowdowns by tier for the jobs of a trace, whose columns name them per network.


RACK, NETWORK = "rack_slowdown", "network_slowdown"


def placement_tiers(jobs: Trace, cluster: Cluster) -> PlacementTiers:
    """Jobs of one `model` slow down alike: in a rack `rack_slowdown` times, across racks `network_slowdown` times; empty: not at all."""
    frame = jobs.frame
    for name in ("model", RACK, NETWORK):
        if name not in frame.columns:
            fix = "give the network that each job trains and how many times slower it is on machines of one rack and across racks"
            raise TraceError(f"column '{name}' is missing", file=jobs.source, field=name, fix=fix)
    networks: dict[str, tuple[float, float, float]] = {}
    for line, (model, rack, network) in enumerate(frame.select("model", RACK, NETWORK).rows(), start=2):
        found = (1.0, 1.0 if rack is None else float(rack), 1.0 if network is None else float(network))
        if not 1.0 <= found[1] <= found[2] < float("inf"):
            what = f"'{model}' slows down {found[1]:g} times in a rack and {found[2]:g} times across racks"
            raise TraceError(what, file=jobs.source, line=line, field=NETWORK, fix="give numbers from 1 on, the second not below the first")
        if networks.setdefault(str(model), found) != found:
            what = f"'{model}' has other slowdowns than on an earlier line"
            raise TraceError(what, file=jobs.source, line=line, field=RACK, fix="give jobs of one model the same slowdowns")
    return PlacementTiers(networks)


# A workload for delay scheduling: gangs of 1 to 64 GPUs, of which a part spends much of its time on the network.
#
# An iteration of a network-heavy job takes two to five times as long across racks as on one machine, and a quarter of
# that excess within a rack; others lose 2 and 5 %. Heavy networks are those with one dominating tensor. ``slow``
# multiplies what crossing racks adds: with half the bandwidth it is 2.

_SIZES = "1:0.1,4:0.15,12:0.2,24:0.25,48:0.25,64:0.05"
_HEAVY = {"alexnet": 2.0, "vgg19": 3.0, "vgg16": 4.0, "vgg11": 5.0}  # times that an iteration takes across racks
_OTHER = "resnet50"
_IN_RACK = 0.25  # of what crossing racks adds
_LIGHT = (1.02, 1.05)
_OWN = ("heavy", "slow")


def dally(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``dally``: settings of ``generic``, and ``heavy`` (part of the jobs) and ``slow``."""
    own = {"heavy": 0.5, "slow": 1.0} | read_given({name: given[name] for name in _OWN if name in given}, dict.fromkeys(_OWN, number))
    if not 0.0 <= own["heavy"] <= 1.0:
        raise fault("heavy", f"{own['heavy']:g} is not a part of the jobs, from 0 to 1")
    if not 0.0 < own["slow"] < float("inf"):
        raise fault("slow", f"{own['slow']:g} is not above zero")
    rest = {name: value for name, value in given.items() if name not in _OWN}
    trace = generic(seed, {"sizes": _SIZES} | rest)
    rng = np.random.default_rng([seed, len(_HEAVY)])
    kind = np.where(rng.random(len(trace)) < own["heavy"], rng.integers(0, len(_HEAVY), len(trace)), -1)
    across = np.array([*(1.0 + own["slow"] * (times - 1.0) for times in _HEAVY.values()), _LIGHT[1]])
    within = np.minimum([*(1.0 + _IN_RACK * (times - 1.0) for times in _HEAVY.values()), _LIGHT[0]], across)
    names = [*_HEAVY, _OTHER]  # kind -1 is the last one
    columns = {"model": [names[k] for k in kind.tolist()], RACK: within[kind], NETWORK: across[kind]}
    frame = trace.frame.with_columns(pl.Series(name, column) for name, column in columns.items())
    return Trace(frame, source=f"generated: dally, seed {seed}")
