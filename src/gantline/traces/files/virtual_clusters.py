"""Virtual clusters by file: a name and a number of nodes per line, with the header ``name,nodes[,gpus]`` or Lucid's ``,num``.

Each becomes a pool of nodes, with eight GPUs each unless the file says otherwise.
"""

from __future__ import annotations

from pathlib import Path

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import NotFoundError
from gantline.traces.importers.table import number, read_foreign, text

_GPUS = 8
_COUNTS = ("nodes", "num")
_LAYOUT = "write name,nodes and a line per virtual cluster: research,3"


def read_virtual_clusters(path: Path) -> Cluster:
    """The cluster that such a file describes; its nodes are called after their pool, ``research-0``."""
    if not path.is_file():
        raise NotFoundError("no such file", where=str(path), fix="check the path given as --cluster")
    raw = read_foreign(path, ())
    columns = raw.frame.columns
    count = next((name for name in _COUNTS if name in columns), None)
    if count is None or len(columns) < 2:
        raise raw.error("does not say how many nodes a virtual cluster has", field="nodes", fix=_LAYOUT)
    names, counts = text(raw, columns[0]).to_list(), number(raw, count, required=True).to_list()
    gpus = number(raw, "gpus", required=True).to_list() if "gpus" in columns else [float(_GPUS)] * len(names)
    nodes: list[Node] = []
    for row, (pool, many, each) in enumerate(zip(names, counts, gpus)):
        if not pool:
            raise raw.error("a virtual cluster has no name", row=row, fix=_LAYOUT)
        if pool in names[:row]:
            raise raw.error(f"two virtual clusters are called '{pool}'", row=row, fix="give each one line")
        for field, value in ((count, many), ("gpus", each)):
            if value < 1 or value % 1:
                raise raw.error(f"virtual cluster '{pool}' has {value:g}", row=row, field=field, fix="write a whole number above zero")
        nodes += [Node(f"{pool}-{number}", gpus=int(each), pool=pool) for number in range(int(many))]
    return Cluster(tuple(nodes), spec=str(path))
