"""What Gantline has of AntMan, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="antman",
    title="Guests in the gaps of guaranteed jobs",
    papers=("Xiao et al.: AntMan: Dynamic Scaling on GPU Clusters for Deep Learning (OSDI 2020)",),
    page="policies/antman.md",
    policies={
        "antman": ".policies:AntMan",
    },
    performance_models={
        "guests": ".traces:guests",
    },
    generators={
        "antman": (".traces:antman", "guaranteed jobs that leave their GPUs partly idle, and guests (after OSDI 2020)"),
    },
    studies={
        "antman-guests": ".studies:AntManGuests",
    },
    held_against=(
        HeldAgainst(
            "runs of the version in Muri's simulator, 100 to 400 jobs",
            "every figure of the published table is equal",
            "tests/systems/muri/test_muri_reference.py",
        ),
    ),
)
