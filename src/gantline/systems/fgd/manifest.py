"""What Gantline has of FGD, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="fgd",
    title="Parts of GPUs without fragments",
    papers=(
        "Weng et al.: Beware of Fragmentation, Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent (USENIX ATC 2023)",
    ),
    page="policies/fgd.md",
    fillings={
        "fgd": ".scheme:SCHEME",
    },
    held_against=(
        HeldAgainst(
            "the published curves of five rules, eight workloads and ten seeds",
            "157,200 of 157,200 values equal",
            "tests/systems/fgd/test_fgd.py",
        ),
    ),
)
