"""What Gantline has of Dally, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="dally",
    title="Jobs wait a tuned time for machines that are near each other, after the outline of Dally that is public",
    papers=("Sharma et al.: Dally, GPU Cluster Scheduling for Network-Sensitive Deep Learning (arXiv 2024)",),
    page="policies/dally-like.md",
    policies={
        "dally-like": ".policies:DallyLike",
    },
    generators={
        "dally": (".traces:dally", "gangs of 1 to 64 GPUs, half of which slow down where they cross machines and racks"),
    },
    performance_models={
        "placement-tiers": (".traces:placement_tiers", "slowdowns within a rack and across racks, from the columns of the trace"),
    },
    studies={
        "dally-delays": ".studies:DallyDelays",
    },
    held_against=(
        HeldAgainst(
            "nothing of the authors: their program is not public",
            "tested against the rules of delay scheduling and the shape of the experiment",
            "tests/systems/dally/test_dally.py",
        ),
    ),
)
