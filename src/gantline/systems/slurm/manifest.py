"""What Gantline has of Slurm, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="slurm",
    title="Jobs by priority that grows with age, gaps filled by time limits, as Slurm's multifactor and backfill plugins do",
    papers=("Yoo, Jette, Grondona: SLURM: Simple Linux Utility for Resource Management (JSSPP 2003)",),
    page="watch.md",
    policies={
        "slurm": ".policies:SlurmOrder",
    },
    held_against=(
        HeldAgainst(
            "slurmctld 22.05 with three slurmd, priority/multifactor and sched/backfill",
            "starts of jobs that Slurm itself then made, beside their forecasts",
            "tests/system/test_watch_slurm.py",
        ),
    ),
)
