"""What Gantline has of Tiresias, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="tiresias",
    title="Queues by attained service",
    papers=("Gu et al.: Tiresias, A GPU Cluster Manager for Distributed Deep Learning (NSDI 2019)",),
    page="policies/tiresias.md",
    policies={
        "tiresias": ".policies:Tiresias",
    },
    regimes={
        "tiresias": ".regime:REGIME",
    },
    importers={
        "tiresias": (".importer:read", "Tiresias traces in seconds (CSV)"),
    },
    studies={
        "tiresias-comparison": ".studies:TiresiasComparison",
    },
    held_against=(
        HeldAgainst(
            "runs of the original simulator, job by job",
            "start and end of every job are equal",
            "tests/systems/tiresias/test_tiresias_reference.py",
        ),
    ),
)
