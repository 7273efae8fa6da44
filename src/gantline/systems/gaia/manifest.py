"""What Gantline has of GAIA, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="gaia",
    title="Batch jobs wait for a clean grid",
    papers=("Hanafy et al.: Going Green for Less Green, Optimizing the Cost of Reducing Cloud Carbon Emissions (ASPLOS 2024)",),
    page="policies/gaia.md",
    policies={
        "gaia": ".policies:Gaia",
    },
    regimes={
        "gaia": ".regime:REGIME",
    },
    imitations={
        "gaia": ".imitation.drive:drive",
    },
    scopes={
        "gaia": ".regime:SCOPE",
    },
    importers={
        "gaia": (".importer:read", "GAIA's batch jobs on CPUs: arrival_time, length, cpus (CSV)"),
    },
    held_against=(
        HeldAgainst(
            "recorded runs of the original simulator in ten settings",
            "10,910 of 10,910 rows equal in order, start, wait, end, carbon and cost",
            "tests/systems/gaia/test_gaia.py",
        ),
    ),
)
