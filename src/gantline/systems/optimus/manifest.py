"""What Gantline has of Optimus, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="optimus",
    title="Parameter servers and workers by marginal gain",
    papers=("Peng et al.: Optimus, An Efficient Dynamic Resource Scheduler for Deep Learning Clusters (EuroSys 2018)",),
    page="policies/optimus.md",
    policies={
        "optimus": ".policies.policy:Optimus",
        "optimus.drf": ".policies.policy:OptimusDrf",
    },
    studies={
        "optimus-drf": ".studies:OptimusDrfStudy",
    },
    held_against=(
        HeldAgainst(
            "a plain greedy for sizes, brute force for places",
            "equal",
            "tests/systems/optimus/test_servers_and_workers.py",
        ),
        HeldAgainst(
            "published runs in the simulator of Pollux",
            "all 12,800 jobs of Tiresias and Optimus end in the published second",
            "tests/systems/pollux/test_reference.py",
        ),
    ),
)
