"""What Gantline has of Pollux, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="pollux",
    title="Goodput: sizes and batch sizes that adapt together",
    papers=("Qiao et al.: Pollux, Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning (OSDI 2021)",),
    page="policies/pollux.md",
    policies={
        "adaptdl": ".policies:AdaptDL",
        "pollux": ".policies:Pollux",
    },
    regimes={
        "pollux": ".regime:REGIME",
    },
    imitations={
        "pollux": ".imitation.drive:drive",
    },
    scopes={
        "pollux": ".regime:SCOPE",
    },
    importers={
        "pollux": (".traces:read", "Pollux and Sia workloads: name, time, application, num_replicas, batch_size"),
    },
    generators={
        "pollux": (".traces:pollux", "Pollux' workloads (OSDI 2021), the same jobs for the same seed and list of Philly's jobs"),
    },
    studies={
        "pollux-load": ".studies:PolluxLoad",
    },
    also_called={
        "adaptdl": "pollux",
        "sia": "pollux",
    },
    held_against=(
        HeldAgainst(
            "published runs of Tiresias and Optimus in its simulator",
            "all 12,800 jobs end in the published second",
            "tests/systems/pollux/test_reference.py",
        ),
        HeldAgainst(
            "published averages of Pollux at four loads",
            "within 0.9 % on average, within 2.7 % by workload",
            "tests/systems/pollux/test_reference.py",
        ),
    ),
)
