"""What Gantline has of Sia, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="sia",
    title="Goodput on several device types, by an integer program",
    papers=("Jayaram Subramanya et al.: Sia, Heterogeneity-aware, goodput-optimized ML-cluster scheduling (SOSP 2023)",),
    page="policies/sia.md",
    policies={
        "sia": ".policies.policy:Sia",
    },
    regimes={
        "sia": ".regime:REGIME",
    },
    imitations={
        "sia": ".imitation.drive:drive",
    },
    scopes={
        "sia": ".regime:SCOPE",
    },
    studies={
        "sia-heterogeneous": ".studies:SiaHeterogeneous",
        "sia-homogeneous": ".studies:SiaHomogeneous",
    },
    held_against=(
        HeldAgainst(
            "recorded decisions of the artifact, followed",
            "every completion second, restart and GPU-second",
            "tests/systems/sia/test_reference.py",
        ),
        HeldAgainst(
            "another solver, and all answers on small programs",
            "the same optimum, ties included",
            "tests/systems/sia/test_program.py",
        ),
    ),
)
