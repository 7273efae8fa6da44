"""Link graphs of servers: by name, or from a table of links."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.topology import LINK_CLASSES, GpuLink, LinkGraph
from gantline.policies.placement.links.topologies import find_topology
from gantline.traces.importers.table import number, read_foreign, text


def read_topology(name: str, system: str = "") -> LinkGraph:
    """A server by name (`dgx-v`), or from a file (`read_topologies`); `system`: which one, where it holds several."""
    found = read_topologies(name)
    if system and system not in found:
        raise NotFoundError(f"no server '{system}'", where=name, fix=near(system, found))
    if not system and len(found) > 1:
        raise UsageError(f"holds {len(found)} servers", where=name, fix=f"choose one: --system {next(iter(found))}")
    return found[system] if system else next(iter(found.values()))


def read_topologies(name: str) -> dict[str, LinkGraph]:
    """The servers of a file: ``gpu_a,gpu_b,bandwidth_GBps``, where known ``link_type``, and ``system`` where there are several.

    Pairs that the file does not list are connected by the PCIe bus; a server whose links leave a GPU alone is refused. A name that is
    no file is that of a server whose links are known.
    """
    if not (name.endswith((".csv", ".gz")) or Path(name).exists()):
        return {name: find_topology(name)}
    raw = read_foreign(Path(name), ("gpu_a", "gpu_b", "bandwidth_GBps"))
    columns = [text(raw, column).to_list() for column in ("system", "gpu_a", "gpu_b", "link_type")]
    links: dict[str, list[GpuLink]] = {}
    for row, (system, a, b, kind, speed) in enumerate(zip(*columns, number(raw, "bandwidth_GBps", required=True).to_list())):
        if not a or not b:
            raise raw.error("an end of the link is missing", row=row, field="gpu_a" if not a else "gpu_b", fix="name a GPU")
        if kind and kind not in LINK_CLASSES:
            raise raw.error(f"no class of links is called '{kind}'", row=row, field="link_type", fix=near(kind, LINK_CLASSES))
        links.setdefault(system, []).append(GpuLink(a, b, speed, LINK_CLASSES[kind] if kind else -1))
    return {system: _graph(found, f"{name}, server '{system}'" if system else name) for system, found in links.items()}


def _graph(links: list[GpuLink], where: str) -> LinkGraph:
    names = sorted({end for link in links for end in (link.a, link.b)}, key=lambda end: (len(end), end))
    graph = LinkGraph.of(names, links, where)
    graph.check_connected(where)
    return graph.with_bus()
