"""``gantline placement list|show|check``: which placement rules there are, what can be counted on, whether one keeps the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.console import Column, Form, Sheet, show, show_object
from gantline.cli.outputs import check_table_target, write_table
from gantline.cli.policy import show_findings
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.lab.conformance.placement import check_placement
from gantline.lab.experiment.cluster_filling import fill as fill_cluster
from gantline.policies.placement.links.rules import RING_RULES, embed, preserved
from gantline.policies.placement.parts.scores import PART_RULES
from gantline.policies.placement.rules import find_placement, placement_rules
from gantline.traces.files.node_lists import read_topology
from gantline.traces.files.policies import load_placement

placement_app = App(name="placement")
RuleName = Annotated[str, Parameter(help="A rule of ours, or FILE.py:RULE.")]


@placement_app.command(name="list")
def list_rules(*, output: Form = "table") -> None:
    """List all placement rules, ours and those of installed packages."""
    parts = [rule for rule in map(find_placement, PART_RULES) if rule.only_parts]
    rows = [(rule.name, rule.what) for rule in (*placement_rules().values(), *parts)]
    show(Sheet((Column("placement"), Column("which devices")), rows), output)


@placement_app.command(name="show")
def show_rule(name: RuleName, /, *, output: Form = "table") -> None:
    """Show one placement rule with its properties."""
    rule = load_placement(name)
    show_object({"placement": rule.name, "which devices": rule.what, **rule.properties}, output)


@placement_app.command(name="check")
def check_rule(name: RuleName, /, *, output: Form = "table") -> int:
    """Put a placement rule through the conformance suite: a line per rule, exit code 1 if one is broken."""
    return show_findings(check_placement(name), output)


# ``gantline placement choose``: which GPUs of a server a gang gets, by the links between them.

place_app = App(
    name="choose",
    help_epilogue="""Topologies: dgx-v, dgx-p, summit, torus-2d, cubeMesh-16, or a table of links
(gpu_a,gpu_b,link_type,bandwidth_GBps). Examples:

  gantline placement choose --topology dgx-v --gpus 5 --rule preserve -o json
  gantline placement choose --topology links.csv --gpus 3 --rule greedy --busy 1,4""",
)


@place_app.default
def place(
    *,
    topology: str,
    gpus: int,
    rule: str = "preserve",
    pattern: Literal["ring", "clique", "star"] = "ring",
    busy: str = "",
    insensitive: bool = False,
    system: str = "",
    output: Form = "table",
) -> None:
    """Choose GPUs of a server for a gang.

    Args:
        topology: A server by name, or a table of its links.
        gpus: How many are wanted.
        rule: baseline, topoAware, greedy, preserve; unchecked: minScore, greedyRoute, preserveRoute.
        pattern: Which GPUs of the gang talk with each other.
        busy: GPUs that are in use: 1,4.
        insensitive: The job gains little from bandwidth.
        system: Which server of a table that holds several.
    """
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
    summary = {
        "ring": names,
        "aggregate_bw": found.aggregate,
        "effective_bw": effective,
        "preserved_bw": preserved(graph, free, found.order),
    }
    summary |= {"double_nvlink": double, "single_nvlink": single, "pcie": pcie}
    shown = summary if output == "json" else summary | {"ring": "-".join(map(str, names))}
    show_object(shown, output)


# ``gantline placement fill``: fill a cluster with pods that ask for parts of GPUs, and say how well they were packed.

fill_app = App(
    name="fill",
    help_epilogue="""Pods and nodes are the tables that Alibaba published in 2023 (name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec and
sn,cpu_milli,memory_mib,gpu,model). Examples:

  gantline placement fill pods.csv --cluster nodes.csv --placement fgd
  gantline placement fill pods.csv --cluster nodes.csv --placement bestfit --seed 42 --compat fgd --out curves.csv""",
)


@fill_app.default
def fill(
    pods: Path,
    /,
    *,
    cluster: Path,
    placement: Literal["fgd", "bestfit", "dotprod", "clustering", "packing", "random"] = "fgd",
    tune: float = 1.3,
    seed: int = 42,
    tie: float = 1e-6,
    compat: str = "",
    out: Path | None = None,
    placements: Path | None = None,
    output: Form = "table",
) -> None:
    """Fill a cluster with pods that never leave.

    Args:
        pods: The pods.
        cluster: The nodes.
        placement: The rule that places each pod.
        tune: So many times the GPUs of the cluster are asked for in all.
        seed: Of the order in which pods come.
        tie: Scores (0 to 100) that differ by no more than this are equal: the first node wins.
        compat: fgd: order, scores and ties as in the published runs.
        out: Write the curves there: arrived,alloc,frag,frag_of_idle in per cent, 131 bins.
        placements: Write what became of each pod there: pod,node,device.
    """
    for path, option in ((out, "--out"), (placements, "--placements")):
        check_table_target(path, option, pods)
    found = fill_cluster(pods, cluster, placement, tune=tune, seed=seed, tie=tie, compat=compat)
    if out is not None:
        write_table(found.curves, out)
    if placements is not None:
        write_table(found.placements, placements)
    last = found.curves.drop_nulls().row(-1, named=True)
    rows = [(placement, seed, len(found.order), found.failed, *last.values())]
    share = lambda value: f"{value:.2f}"  # noqa: E731
    columns = [Column(name, True) for name in ("seed", "pods", "failed", "arrived")]
    columns += [Column(name, True, share) for name in ("alloc", "frag", "frag_of_idle")]
    show(Sheet((Column("placement"), *columns), rows), output)


placement_app.command(place_app)
placement_app.command(fill_app)
