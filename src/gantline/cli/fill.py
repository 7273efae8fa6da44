"""``gantline fill``: fill a cluster with pods that ask for parts of GPUs, and say how well they were packed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.console import Column, Form, Sheet, show

app = App(
    name="fill",
    help_epilogue="""Pods and nodes are the tables that Alibaba published in 2023 (name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec and
sn,cpu_milli,memory_mib,gpu,model). Examples:

  gantline fill pods.csv --cluster nodes.csv --placement fgd
  gantline fill pods.csv --cluster nodes.csv --placement bestfit --seed 42 --compat fgd --out curves.csv""",
)


@app.default
def fill(
    pods: Annotated[Path, Parameter(help="The pods.")],
    /,
    *,
    cluster: Annotated[Path, Parameter(help="The nodes.")],
    placement: Annotated[
        Literal["fgd", "bestfit", "dotprod", "clustering", "packing", "random"], Parameter(help="The rule that places each pod.")
    ] = "fgd",
    tune: Annotated[float, Parameter(help="So many times the GPUs of the cluster are asked for in all.")] = 1.3,
    seed: Annotated[int, Parameter(help="Of the order in which pods come.")] = 42,
    tie: Annotated[float, Parameter(help="Scores (0 to 100) that differ by no more than this are equal: the first node wins.")] = 1e-6,
    compat: Annotated[str, Parameter(help="fgd: order, scores and ties as in the published runs.")] = "",
    out: Annotated[Path | None, Parameter(help="Write the curves there: arrived,alloc,frag,frag_of_idle in per cent, 131 bins.")] = None,
    placements: Annotated[Path | None, Parameter(help="Write what became of each pod there: pod,node,device.")] = None,
    output: Form = "table",
) -> None:
    """Fill a cluster with pods that never leave."""
    from gantline.cli.outputs import check_table_target, write_table
    from gantline.lab.experiment.filling.fill import fill as fill_cluster

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
