"""What Gantline has of Gandiva, by name, and what it was held against."""

from __future__ import annotations

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="gandiva",
    title="Time slicing: when not all jobs fit, they take turns",
    papers=("Xiao et al.: Gandiva, Introspective Cluster Scheduling for Deep Learning (OSDI 2018)",),
    page="policies/gandiva.md",
    policies={
        "gandiva": ".policies.gandiva:Gandiva",
    },
    held_against=(
        HeldAgainst(
            "the rules of the paper, on small clusters",
            "turns in order, no job left out",
            "tests/systems/gandiva/test_gandiva.py",
        ),
    ),
)
