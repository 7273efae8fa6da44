"""What Gantline has of Shockwave, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="shockwave",
    title="A market over a window of rounds, for jobs whose batch size changes",
    papers=("Zheng et al.: Shockwave, Fair and Efficient Cluster Scheduling for Dynamic Adaptation in ML (NSDI 2023)",),
    page="policies/shockwave.md",
    policies={
        "shockwave": ".policies:Shockwave",
    },
    regimes={
        "shockwave": ".regime:REGIME",
    },
    imitations={
        "shockwave": ".imitation.drive:drive",
    },
    scopes={
        "shockwave": ".regime:SCOPE",
    },
    studies={
        "shockwave-table": ".studies:ShockwaveTable",
    },
    held_against=(
        HeldAgainst(
            "15 published schedules, followed",
            "every job's JCT to 0.01 s",
            "tests/systems/shockwave/test_shockwave_reference.py",
        ),
        HeldAgainst(
            "recorded inputs and optima of the artifact's planner",
            "1,194 of 1,194 rows, 22 of 22 optima",
            "tests/systems/shockwave/test_shockwave_reference.py",
        ),
        HeldAgainst(
            "every plan there is, on small instances",
            "as good as the best",
            "tests/systems/shockwave/test_window.py",
        ),
    ),
)
