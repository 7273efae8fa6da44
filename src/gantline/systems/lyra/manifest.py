"""What Gantline has of Lyra, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="lyra",
    title="Inference servers on loan to training, and elastic jobs",
    papers=("Li et al.: Lyra, Elastic Scheduling for Deep Learning Clusters (EuroSys 2023)",),
    page="policies/lyra.md",
    policies={
        "lyra": ".policies.policy:Lyra",
    },
    studies={
        "lyra-loans": ".studies:LyraLoans",
    },
    held_against=(
        HeldAgainst(
            "brute force, for the knapsack and for which servers go back",
            "as good as the best",
            "tests/systems/lyra/test_lyra.py",
        ),
    ),
)
