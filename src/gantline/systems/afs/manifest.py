"""What Gantline has of AFS, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="afs",
    title="Elastic sharing: one step at a time to the job in which it does most good",
    papers=("Hwang et al.: Elastic Resource Sharing for Distributed Deep Learning (NSDI 2021)",),
    page="policies/afs.md",
    policies={
        "afs": ".policies:Afs",
    },
    studies={
        "afs-sharing": ".studies:AfsSharing",
        "afs-clusters": ".studies:AfsClusters",
    },
    held_against=(
        HeldAgainst(
            "the claims of the paper, on jobs of our own and of Microsoft's clusters",
            "see `gantline reproduce afs-sharing` and `afs-clusters`",
            "tests/lab/experiment/test_reproduce.py",
        ),
        HeldAgainst(
            "brute force and the rules that must hold for every input",
            "equal on random curves",
            "tests/policies/test_elastic_sharing.py",
        ),
    ),
)
