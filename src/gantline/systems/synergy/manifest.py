"""What Gantline has of Synergy, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="synergy",
    title="CPUs and memory go to the jobs that gain by them",
    papers=("Mohan et al.: Looking Beyond GPUs for DNN Scheduling on Multi-Tenant Clusters (OSDI 2022)",),
    page="policies/synergy.md",
    policies={
        "synergy": ".policies.policy:Synergy",
    },
    regimes={
        "synergy": ".regime:REGIME",
    },
    imitations={
        "synergy": ".imitation:drive",
    },
    scopes={
        "synergy": ".regime:SCOPE",
    },
    importers={
        "synergy": (".traces:read", "Synergy's replay files: job, network, arrival, steps, GPUs (CSV without header)"),
    },
    performance_models={
        "sensitivity": ".traces:make_model",
    },
    profile_readers={
        "synergy": ".traces:read_profiles",
        "sensitivity": ".traces:read_profiles",
    },
    held_against=(
        HeldAgainst(
            "26 runs of the original simulator on its replay files",
            "mean, median, largest JCT and end of 23 runs without opt equal; of two with opt mean JCT within 0.5 %, end within 300 s; "
            "one fails in the original",
            "tests/systems/synergy/test_synergy_regime.py",
        ),
    ),
)
