"""What Gantline has of Lucid, by name, and what it was held against."""

from __future__ import annotations

from gantline.registry import System

SYSTEM = System(
    name="lucid",
    title="Small jobs share GPUs where that hardly slows them down",
    papers=("Hu et al.: Lucid, A Non-intrusive, Scalable and Interpretable Scheduler for Deep Learning Training Jobs (ASPLOS 2023)",),
    page="policies/lucid.md",
    policies={
        "qssf": ".policies.qssf:QuasiShortestServiceFirst",
    },
    importers={
        "lucid": (".importer:read", "Lucid's logs, on the clock of its simulator (CSV)"),
    },
)
