"""What Gantline has of Themis, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="themis",
    title="Auctions for finish-time fairness",
    papers=("Mahajan et al.: Themis, Fair and Efficient GPU Cluster Scheduling (NSDI 2020)",),
    page="policies/themis.md",
    policies={
        "themis": ".policies.policy:Themis",
    },
    studies={
        "themis-fairness": ".studies:ThemisFairness",
    },
    held_against=(
        HeldAgainst(
            "exact search, for the split of an auction",
            "the same product; payments by their definition, and lies never pay",
            "tests/systems/themis/test_auction.py",
        ),
    ),
)
