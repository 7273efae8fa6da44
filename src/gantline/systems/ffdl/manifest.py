"""What Gantline has of FfDL, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="ffdl",
    title="Sizes and batch sizes with the greatest sum of speedups",
    papers=("Saxena et al.: Effective Elastic Scaling of Deep Learning Workloads (MASCOTS 2020)",),
    page="policies/ffdl.md",
    policies={
        "ffdl": ".policies:Ffdl",
    },
    studies={
        "ffdl-batch": ".studies:FfdlBatch",
    },
    held_against=(
        HeldAgainst(
            "brute force over batches and GPUs",
            "the same sum",
            "tests/systems/ffdl/test_ffdl.py",
        ),
    ),
)
