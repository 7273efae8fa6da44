"""What Gantline has of MAPA, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="mapa",
    title="Gangs on GPUs that are well connected",
    papers=("Ranganath et al.: MAPA, Multi-Accelerator Pattern Allocation Policy for Multi-Tenant GPU Servers (SC 2021)",),
    page="policies/mapa.md",
    importers={
        "mapa": (".importer:read", "MAPA's job lines: num_gpus,pattern,arrival_time,service_time,bw_sensitive,net (CSV)"),
    },
    placements={
        "mapa.baseline": ".placement:BASELINE",
        "mapa.topoAware": ".placement:TOPO_AWARE",
        "mapa.greedy": ".placement:GREEDY",
        "mapa.preserve": ".placement:PRESERVE",
        "mapa.minScore": ".placement:MIN_SCORE",
        "mapa.greedyRoute": ".placement:GREEDY_ROUTE",
        "mapa.preserveRoute": ".placement:PRESERVE_ROUTE",
    },
    held_against=(
        HeldAgainst(
            "an independent implementation: choices on idle servers, and 100 jobs on one",
            "75 of 75 rings; the means of bandwidths of four rules to the digit shown",
            "tests/systems/mapa/test_mapa.py",
        ),
    ),
)
