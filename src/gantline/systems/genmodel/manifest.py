"""What Gantline has of GenModel and GenTree, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="genmodel",
    title="What an AllReduce costs, and the plan that costs least",
    papers=("Xiong et al.: Revisiting the Time Cost Model of AllReduce (arXiv 2024)",),
    page="policies/genmodel.md",
    performance_models={
        "genmodel": (".models:GenModel", "an AllReduce per unit of work over nodes and racks (GenTree); column allreduce_size"),
    },
    held_against=(
        HeldAgainst(
            "schedules of messages, and the best plans of a co-author's constants",
            "closed forms equal message by message; direct, 6x2, 5x3, 8x3, 8x8 for 8, 12, 15, 24, 64 servers",
            "tests/systems/genmodel/test_genmodel.py",
        ),
    ),
)
