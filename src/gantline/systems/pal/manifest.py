"""What Gantline has of PAL, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="pal",
    title="Devices of one type that differ in speed",
    papers=("Jain et al.: PAL, A Variability-Aware Policy for Scheduling ML Workloads in GPU Clusters (SC 2024)",),
    page="policies/pal.md",
    regimes={
        "pal": ".regime:REGIME",
    },
    imitations={
        "pal": ".imitation:drive",
    },
    scopes={
        "pal": ".regime:SCOPE",
    },
    importers={
        "pal": (".importer:read", "PAL's workloads: job, gpus, submit_s, iterations, model (CSV)"),
    },
    held_against=(
        HeldAgainst(
            "the artifact's own classes: choices, rounds and 17 runs",
            "15 of 15 choices, 4 of 4 rounds, start and end of 2,720 of 2,720 jobs",
            "tests/systems/pal/test_pal.py",
        ),
    ),
)
