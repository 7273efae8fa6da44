"""What Gantline has of AlloX, by name, and what it was held against."""

from __future__ import annotations

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="allox",
    title="Jobs for a CPU or a GPU, matched to machines; and IRFsim, the simulator of its authors",
    papers=("Le, Sun, Chowdhury, Liu: AlloX, Compute Allocation in Hybrid Clusters (EuroSys 2020)",),
    page="policies/allox.md",
    policies={
        "allox": ".policies.policy:AlloX",
        "allox.plus": ".policies.policy:AlloXPlus",
        "allox.sjf": ".policies.policy:ShortestPairFirst",
        "allox.srpt": ".policies.policy:ShortestRemainingPairFirst",
        "drf": ".policies.policy:DominantResourceFairness",
        "drf-ext": ".policies.policy:ExtendedDRF",
        "drf-fifo": ".policies.policy:FirstComeDRF",
        "drf-sjf": ".policies.policy:ShortestFirstDRF",
        "es": ".policies.policy:AlloxEqualShare",
        "fs": ".policies.policy:EqualUsers",
    },
    regimes={
        "irfsim": ".regime:REGIME",
        "irfsim-known": ".regime:KNOWN",
    },
    imitations={
        "irfsim": ".imitation.drive:drive",
        "irfsim-known": ".imitation.drive:drive",
    },
    scopes={
        "irfsim": ".imitation.drive:SCOPE",
        "irfsim-known": ".imitation.drive:SCOPE",
    },
    importers={
        "irfsim": (".importer:read", "IRFsim / AlloX jobs: four lines a job, or the same as CSV"),
    },
    generators={
        "hybrid": (".generator:hybrid", "jobs for a GPU or a CPU node, like those of AlloX' simulator (EuroSys 2020)"),
    },
    studies={
        "allox-alpha": ".studies.figures:AlloXAlpha",
        "allox-baselines": ".studies.figures:AlloXBaselines",
    },
    also_called={
        "allox": "irfsim",
    },
    held_against=(
        HeldAgainst(
            "runs of the original simulator, job by job",
            "every job ends in the same second",
            "tests/systems/allox/test_irfsim.py",
        ),
        HeldAgainst(
            "exact matchings",
            "the least total completion time, with stated ties",
            "tests/systems/allox/test_matching.py",
        ),
    ),
)
