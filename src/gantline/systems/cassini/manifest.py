"""What Gantline has of CASSINI, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="cassini",
    title="Jobs that share links take turns on them",
    papers=("Rajasekaran et al.: CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters (NSDI 2024)",),
    page="policies/cassini.md",
    policies={
        "cassini": ".policies:Cassini",
    },
    generators={
        "periodic": (".generator:periodic", "jobs that compute and communicate in turn, for links that are shared (CASSINI, NSDI 2024)"),
    },
    studies={
        "cassini-first-come": ".studies:CassiniFirstCome",
        "cassini-leaf-spine": ".studies:CassiniLeafSpine",
    },
    held_against=(
        HeldAgainst(
            "the scores and iteration times of four small cases, by hand",
            "equal",
            "tests/models/test_shared_links.py",
        ),
    ),
)
