"""What Gantline has of Lucid, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="lucid",
    title="Small jobs share GPUs where that hardly slows them down",
    papers=("Hu et al.: Lucid, A Non-intrusive, Scalable and Interpretable Scheduler for Deep Learning Training Jobs (ASPLOS 2023)",),
    page="policies/lucid.md",
    policies={
        "lucid": ".policies.policy:Lucid",
        "qssf": ".policies.policy:QuasiShortestServiceFirst",
    },
    regimes={
        "lucid": ".regime:REGIME",
    },
    imitations={
        "lucid": ".imitation.drive:drive",
    },
    scopes={
        "lucid": ".regime:SCOPE",
    },
    profile_readers={
        "lucid": ".traces:read_profiles",
    },
    importers={
        "lucid": (".traces:read", "Lucid's logs, on the clock of its simulator (CSV)"),
    },
    studies={
        "lucid-slips": ".studies:LucidSlips",
    },
    held_against=(
        HeldAgainst(
            "the artifact's recorded runs: 912 jobs under four policies, six runs of small logs",
            "4,553 of 4,553 job records equal in start, end, queue, preemptions, nodes, pairings and rates; 26 of 26 loans of nodes",
            "tests/systems/lucid/test_reference.py",
        ),
    ),
)
