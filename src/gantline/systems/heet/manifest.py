"""What Gantline has of Heet, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="heet",
    title="Elastic configurations on several device types, after the outline of Heet that is public",
    papers=("Mo, Xu, Xu: Heet, Accelerating Elastic Training in Heterogeneous Deep Learning Clusters (ASPLOS 2024)",),
    page="policies/heet-like.md",
    policies={
        "heet-like": ".policies.policy:HeetLike",
    },
    held_against=(
        HeldAgainst(
            "nothing of the authors: their program is not public",
            "tested against the outline in the paper",
            "tests/systems/heet/test_heet.py",
        ),
    ),
)
