"""``gantline place``: which GPUs of a server a gang gets, by the links between them."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.console import Form, show_object
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near

app = App(
    name="place",
    help_epilogue="""Topologies: dgx-v, dgx-p, summit, torus-2d, cubeMesh-16, or a table of links
(gpu_a,gpu_b,link_type,bandwidth_GBps). Examples:

  gantline place --topology dgx-v --gpus 5 --rule preserve -o json
  gantline place --topology links.csv --gpus 3 --rule greedy --busy 1,4""",
)


@app.default
def place(
    *,
    topology: Annotated[str, Parameter(help="A server by name, or a table of its links.")],
    gpus: Annotated[int, Parameter(help="How many are wanted.")],
    rule: Annotated[
        str, Parameter(help="baseline, topoAware, greedy, preserve; unchecked: minScore, greedyRoute, preserveRoute.")
    ] = "preserve",
    pattern: Annotated[Literal["ring", "clique", "star"], Parameter(help="Which GPUs of the gang talk with each other.")] = "ring",
    busy: Annotated[str, Parameter(help="GPUs that are in use: 1,4.")] = "",
    insensitive: Annotated[bool, Parameter(negative="", help="The job gains little from bandwidth.")] = False,
    system: Annotated[str, Parameter(help="Which server of a table that holds several.")] = "",
    output: Form = "table",
) -> None:
    """Choose GPUs of a server for a gang."""
    from gantline.policies.placement.links.rules import RING_RULES, embed, preserved
    from gantline.traces.files.node_lists import read_topology

    graph = read_topology(topology, system)
    if rule not in RING_RULES:
        raise NotFoundError(f"no rule '{rule}'", where="--rule", fix=near(rule, RING_RULES))
    taken = [name.strip() for name in busy.split(",") if name.strip()]
    unknown = [name for name in taken if name not in graph.gpus]
    if unknown:
        raise UsageError(f"'{unknown[0]}' is no GPU of this server", where="--busy", fix=f"it has {', '.join(graph.gpus)}")
    free = [at for at, name in enumerate(graph.gpus) if name not in taken]
    if not 1 <= gpus <= len(graph.gpus):
        raise UsageError(f"{gpus} GPUs of a server of {len(graph.gpus)}", where="--gpus", fix=f"from 1 to {len(graph.gpus)}")
    found = (
        RING_RULES[rule](graph, free, gpus, not insensitive)
        if pattern == "ring"
        else embed(graph, free, gpus, rule, not insensitive, pattern)
    )
    if found is None:
        why = "too few GPUs are free" if len(free) < gpus else "a better ring than those that are free is worth waiting for"
        raise RefusedError(f"{gpus} GPUs: {why}", where="--busy", fix="wait until others are free")
    double, single, pcie = found.links
    names = [int(name) if name.isdecimal() else name for name in found.gpus]
    effective = None if found.effective is None else round(found.effective, 4)
    told = {"ring": names, "aggregate_bw": found.aggregate, "effective_bw": effective, "preserved_bw": preserved(graph, free, found.order)}
    told |= {"double_nvlink": double, "single_nvlink": single, "pcie": pcie}
    shown = told if output == "json" else told | {"ring": "-".join(map(str, names))}
    show_object(shown, output)
