"""What Gantline has of Muri, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="muri",
    title="Jobs share GPUs stage by stage",
    papers=("Zhao et al.: Multi-Resource Interleaving for Deep Learning Training (SIGCOMM 2022)",),
    page="policies/muri.md",
    policies={
        "muri": ".policies:Muri",
    },
    regimes={
        "muri": ".regime:REGIME",
    },
    imitations={
        "muri": ".imitation.drive:drive",
    },
    scopes={
        "muri": ".regime:SCOPE",
    },
    performance_models={
        "stage-cycles": ".traces:stage_cycles",
    },
    profile_readers={
        "muri": ".traces:read_profiles",
    },
    importers={
        "muri": (".traces:read", "Muri's traces with the stages of an iteration, in milliseconds (CSV)"),
    },
    held_against=(
        HeldAgainst(
            "the published table of runs of the original simulator, 100 to 400 jobs",
            "SRTF, SRSF, Tiresias, AntMan and the unmatched ablation equal in every figure; Muri-S and Muri-L within 3 % of mean JCT",
            "tests/systems/muri/test_muri_reference.py",
        ),
    ),
)
