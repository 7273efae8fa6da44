"""What Gantline has of Blox, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="blox",
    title="A toolkit for schedulers: its clock, its traces and workloads, and its figures",
    papers=("Agarwal et al.: Blox, A Modular Toolkit for Deep Learning Schedulers (EuroSys 2024)",),
    page="reproductions.md",
    policies={
        "synthesizer": ".synthesizer:Synthesizer",
    },
    regimes={
        "blox": ".regime:REGIME",
    },
    importers={
        "blox": (".traces:read", "Blox workload: job_index, arrival_s, total_iterations, ... (CSV)"),
    },
    generators={
        "blox": (".traces:blox", "Blox' default workload (EuroSys 2024), the same jobs for its seed 1"),
        "blox-changing": (".traces:changing", "Blox' two workloads with changing load, after their descriptions"),
    },
    studies={
        "blox-fig6": ".studies:BloxFigure6",
        "blox-fig12": ".studies:BloxFigure12",
        "blox-loss": ".studies:BloxLoss",
        "blox-synthesizer-dual": ".studies:BloxSynthesizerDual",
        "blox-synthesizer-small-large": ".studies:BloxSynthesizerSmallLarge",
    },
    held_against=(
        HeldAgainst(
            "runs of Blox itself, job by job",
            "every job ends in the same second, is first credited in the same round and is stopped as often",
            "tests/systems/blox/test_blox_reference.py",
        ),
    ),
)
