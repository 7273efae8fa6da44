"""What Gantline has of CarbonScaler, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="carbonscaler",
    title="Elastic jobs grow while the grid is clean",
    papers=("Hanafy et al.: CarbonScaler, Leveraging Cloud Workload Elasticity for Optimizing Carbon-Efficiency (SIGMETRICS 2024)",),
    page="policies/carbonscaler.md",
    policies={
        "carbonscaler": ".policies:CarbonScaler",
    },
    held_against=(
        HeldAgainst(
            "recorded plans of the original (compat=carbonscaler)",
            "18 of 18 equal",
            "tests/systems/carbonscaler/test_greedy.py",
        ),
        HeldAgainst(
            "every plan there is, on small cases",
            "as clean as the cleanest",
            "tests/systems/carbonscaler/test_cleanest.py",
        ),
    ),
)
