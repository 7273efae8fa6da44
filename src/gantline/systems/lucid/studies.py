"""Lucid (Hu et al., ASPLOS 2023): what each slip of its simulator changes, and where Lucid stands among its baselines without them."""

from __future__ import annotations

import polars as pl

from gantline.lab.experiment.reproduction import (
    Case,
    Claim,
    Grid,
    PolicyChoice,
    Scale,
    Setting,
    Study,
    TraceSource,
    claim_terms,
    mean_table,
)
from gantline.systems.lucid.policies.policy import REPAIRS

_AS_IT_IS, _ALL = "lucid", "lucid, all repaired"
_POLICIES = (
    PolicyChoice("lucid"),
    *(PolicyChoice("lucid", {"repair": slip}, f"lucid, {slip} repaired") for slip in REPAIRS),
    PolicyChoice("lucid", {"repair": ",".join(REPAIRS)}, _ALL),
)
_BASELINES = tuple(PolicyChoice(name) for name in ("fifo", "sjf", "qssf", "srtf", "tiresias"))


class LucidSlips(Study):
    """Lucid's simulator with its slips repaired one by one."""

    name = "lucid-slips"
    paper = "Hu et al.: Lucid, A Non-intrusive, Scalable and Interpretable Scheduler for DL Training Jobs (ASPLOS 2023)"
    figure = "Section 4: average JCT of Lucid and its baselines, in the authors' simulator"
    what = (
        "912 jobs on 64 GPUs of three virtual clusters in regime lucid: a log made because that of the paper is not published, with the "
        "job numbers and predictions of the artifact. Two of eight nodes profile (two of 135 in the paper), so the order of policies is "
        "not the paper's; what is judged is what each repair changes. The recorded changes are those of variants of the original."
    )
    needs = "synthetic_912_full_log.csv"
    needs_from = "the folder of Lucid's reference runs, with the artifact's profiles and predictions beside it"

    terms = claim_terms(
        {
            "a guest at full speed after its host shortens the average JCT": ("Lucid as it is", "none"),
            "waiting for the profile lengthens it": ("Lucid as it is", "none"),
            "the extra second does not matter": ("Lucid as it is", "0.1 %"),
            "together the slips flatter Lucid little": ("Lucid as it is", "3 %"),
            "Lucid is ahead of first come, first served": ("FIFO", "at least 2 times"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        log = self.needed()
        source = TraceSource(file=str(log), format="lucid")
        base = Setting(source, str(log.with_name("synthetic_912_vc_config.csv")), "lucid", regime="lucid", profiles=str(log.parent))
        return Grid(base, (*_POLICIES, *_BASELINES) if scale == "full" else (*_POLICIES, _BASELINES[0])).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        mean = dict(results.group_by("policy").agg(pl.col("jct_mean").mean()).rows())

        def change(name: str) -> float:
            return 100.0 * (mean[name] / mean[_AS_IT_IS] - 1.0)

        guest, profile, second, together = (
            change(name) for name in ("lucid, guest repaired", "lucid, profile repaired", "lucid, second repaired", _ALL)
        )
        ahead = mean["fifo"] / mean[_AS_IT_IS]
        return [
            Claim(
                "a guest at full speed after its host shortens the average JCT",
                "-2.0 % (recorded)",
                f"{guest:+.1f} %",
                guest < 0.0,
            ),
            Claim("waiting for the profile lengthens it", "+1.6 % (recorded)", f"{profile:+.1f} %", profile > 0.0),
            Claim("the extra second does not matter", "0.0 % (recorded)", f"{second:+.2f} %", abs(second) <= 0.1),
            Claim("together the slips flatter Lucid little", "not published", f"{together:+.1f} %", abs(together) <= 3.0),
            Claim("Lucid is ahead of first come, first served", "5.8 times (recorded)", f"{ahead:.1f} times", ahead >= 2.0),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return mean_table(results, ("policy",), {"jct_mean": "mean JCT s", "makespan": "makespan s"})
