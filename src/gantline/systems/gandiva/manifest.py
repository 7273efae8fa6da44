"""What Gantline has of Gandiva, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="gandiva",
    title="Turns, packing, migration and growth: jobs start at once and are fitted as they run",
    papers=("Xiao et al.: Gandiva, Introspective Cluster Scheduling for Deep Learning (OSDI 2018)",),
    page="policies/gandiva.md",
    policies={
        "gandiva": ".policies.policy:Gandiva",
        "gandiva.introspective": ".policies.policy:Introspective",
    },
    generators={
        "gandiva": (".generator:gandiva", "the small workloads of Gandiva's experiments (OSDI 2018): equal, mix, busy, fragments, growth"),
    },
    studies={
        "gandiva-mechanisms": ".studies:GandivaMechanisms",
    },
    performance_models={
        "utilisation": ".models:Utilisation",
    },
    held_against=(
        HeldAgainst(
            "the rules of the paper, on small clusters",
            "turns in order, no job left out",
            "tests/systems/gandiva/test_introspective.py",
        ),
        HeldAgainst(
            "its mechanisms, each against the same policy without it",
            "six of six inequalities hold over five seeds",
            "tests/systems/gandiva/test_introspective.py",
        ),
    ),
)
