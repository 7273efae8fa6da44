"""Node lists that are published with traces, or that Slurm prints, as clusters; link graphs of servers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import yaml

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.topology import CLASS_NAMES, LINK_CLASSES, GpuLink, LinkGraph
from gantline.policies.placement.links.topologies import find_topology
from gantline.traces.importers.slurm import gpus_of, type_of
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


_GB_PER_MIB = 2**20 / 1e9


def read_openb(src: Path) -> list[Node]:
    """Alibaba 2023, ``openb_node_list_*.csv``: sn, cpu_milli, memory_mib, gpu, model."""
    raw = read_foreign(src, ("sn", "cpu_milli", "memory_mib", "gpu"))
    amounts = zip(number(raw, "gpu").fill_null(0), number(raw, "cpu_milli").fill_null(0), number(raw, "memory_mib").fill_null(0))
    rows = zip(text(raw, "sn"), text(raw, "model"), amounts)
    return [Node(name, model or "cpu", int(gpus), cpus / 1000, memory * _GB_PER_MIB) for name, model, (gpus, cpus, memory) in rows]


def read_pai(src: Path) -> list[Node]:
    """Alibaba 2020, ``pai_machine_spec.csv``, without header: machine, gpu_type, cap_cpu, cap_mem, cap_gpu."""
    raw = read_foreign(src, (), columns=("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"))
    rows = zip(text(raw, "machine"), text(raw, "gpu_type"), number(raw, "cap_gpu"), number(raw, "cap_cpu"), number(raw, "cap_mem"))
    return [Node(name, kind if gpus else "cpu", int(gpus or 0), cpus or 0.0, memory or 0.0) for name, kind, gpus, cpus, memory in rows]


def read_philly(src: Path) -> list[Node]:
    """Microsoft Philly, ``cluster_machine_list``: machineId, number of GPUs, single GPU mem."""
    raw = read_foreign(src, ("machineId", "number of GPUs"))
    kinds = text(raw, "single GPU mem").str.strip_chars().str.to_lowercase()
    rows = zip(text(raw, "machineId"), kinds, number(raw, "number of GPUs"))
    return [Node(name, f"gpu-{kind}" if kind else "gpu", int(gpus or 0)) for name, kind, gpus in rows]


def read_sinfo(src: Path) -> list[Node]:
    """Slurm, ``sinfo -N -o '%N|%G|%c|%m'``: NODELIST, GRES, CPUS, MEMORY; a node in several partitions counts once."""
    raw = read_foreign(src, ("NODELIST", "GRES"), separator="|", quote=False)
    cpus = number(raw, "CPUS") if "CPUS" in raw.frame.columns else [0.0] * len(raw.frame)
    memory = number(raw, "MEMORY") if "MEMORY" in raw.frame.columns else [0.0] * len(raw.frame)
    found: dict[str, Node] = {}
    for name, gres, cores, room in zip(text(raw, "NODELIST"), text(raw, "GRES"), cpus, memory):
        gpus = int(gpus_of(gres))
        kind = type_of(gres) or "gpu" if gpus else "cpu"
        found.setdefault(name, Node(name, kind, gpus, cores or 0.0, (room or 0.0) * _GB_PER_MIB))
    return list(found.values())


#: format -> how it is read
NODE_LISTS: dict[str, Callable[[Path], list[Node]]] = {"openb": read_openb, "pai": read_pai, "philly": read_philly, "sinfo": read_sinfo}


def read_links(src: Path) -> Cluster:
    """A table of links between GPUs, or the name of a server whose links are known: a node per server."""
    graphs = read_topologies(str(src))
    nodes = tuple(Node(name or f"node{at}", "gpu", len(graph.gpus)) for at, (name, graph) in enumerate(graphs.items()))
    links = [
        Link(f"{node.name}:{a}", f"{node.name}:{b}", float(graph.bandwidth[a, b]), CLASS_NAMES[int(graph.kind[a, b])])
        for node, graph in zip(nodes, graphs.values())
        for a, b in combinations(range(len(graph.gpus)), 2)
    ]
    return Cluster(nodes, tuple(links), spec=str(src))


def read_node_list(format: str, src: Path) -> Cluster:
    """The cluster that a node list in this format describes."""
    if format == "mapa":
        return read_links(src)
    if format not in NODE_LISTS:
        raise NotFoundError(f"no node list '{format}'", fix="did you mean 'sinfo'?" if format == "slurm" else near(format, NODE_LISTS))
    return Cluster(tuple(NODE_LISTS[format](src)), spec=str(src))


def cluster_text(cluster: Cluster) -> str:
    """The cluster as a YAML file that ``--cluster`` takes, a line per node."""
    lines = []
    for node in cluster.nodes:
        fields = {"name": node.name, "type": node.type, "gpus": node.gpus, "cpus": float(node.cpus), "memory": round(float(node.memory), 3)}
        entry = yaml.safe_dump({key: value for key, value in fields.items() if value}, default_flow_style=True, sort_keys=False, width=1000)
        lines.append(f"  - {entry.strip()}")
    text = "nodes:\n" + "\n".join(lines) + "\n"
    if cluster.links:
        text += "links:\n"
        for link in cluster.links:
            text += f'  - {{a: "{link.a}", b: "{link.b}", bandwidth: {link.bandwidth:g}, kind: {link.kind}}}\n'
    return text
