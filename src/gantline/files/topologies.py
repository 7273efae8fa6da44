"""Link graphs of servers: by name, or from a table of links."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import UsageError, near
from gantline.core.link_graph import LINK_CLASSES, GpuLink, LinkGraph
from gantline.placement.links.topologies import find_topology
from gantline.workload.importers.table import number, read_foreign, text


def read_topology(name: str, system: str = "") -> LinkGraph:
    """A server by name (`dgx-v`), or a file: ``gpu_a,gpu_b,bandwidth_GBps`` and, where known, ``link_type``; ``system`` where it has several.

    Pairs that the file does not list are connected by the PCIe bus; a file whose links leave a GPU alone is refused.
    """
    if not (name.endswith((".csv", ".gz")) or Path(name).exists()):
        return find_topology(name)
    raw = read_foreign(Path(name), ("gpu_a", "gpu_b", "bandwidth_GBps"))
    systems = text(raw, "system").to_list()
    known = sorted(set(systems))
    if not system and len(known) > 1:
        raise raw.error(f"holds {len(known)} servers", field="system", fix=f"choose one: --system {known[0]}")
    if system and system not in known:
        raise raw.error(f"has no server '{system}'", field="system", fix=near(system, known))
    ends = [text(raw, column).to_list() for column in ("gpu_a", "gpu_b")]
    kinds, speeds = text(raw, "link_type").to_list(), number(raw, "bandwidth_GBps", required=True).to_list()
    links = []
    for row, (a, b, kind, speed) in enumerate(zip(*ends, kinds, speeds)):
        if system and systems[row] != system:
            continue
        if not a or not b:
            raise raw.error("an end of the link is missing", row=row, field="gpu_a" if not a else "gpu_b", fix="name a GPU")
        if kind and kind not in LINK_CLASSES:
            raise raw.error(f"no class of links is called '{kind}'", row=row, field="link_type", fix=near(kind, LINK_CLASSES))
        links.append(GpuLink(a, b, speed, LINK_CLASSES[kind] if kind else -1))
    names = sorted({end for link in links for end in (link.a, link.b)}, key=lambda end: (len(end), end))
    if len(names) < 2:
        raise UsageError("fewer than two GPUs", where=name, fix="list the links of the server")
    graph = LinkGraph.of(names, links, name)
    graph.check_connected(name)
    return graph.with_bus()
