"""Slowdowns by tier for the jobs of a trace, whose columns name them per network."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError
from gantline.models.placement_speeds import PlacementTiers
from gantline.traces.trace import Trace

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
