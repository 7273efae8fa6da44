"""Themis (Mahajan et al., NSDI 2020): the worst rho against the fairness knob f and the length of leases."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from gantline.lab.experiment.reproduction import (
    WITHIN,
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

_KNOB: dict[Scale, tuple[float, ...]] = {"full": (0.0, 0.4, 0.8, 1.0), "small": (0.0, 0.8)}
_LEASES = (300, 2400)
_BASELINES = ("fifo", "las", "srtf")
_STEADY = 1.02  # what counts as not rising


def _knob(f: float) -> str:
    return f"themis f={f:g}"


def _lease(seconds: int) -> str:
    return f"themis, leases of {seconds // 60} min"


class ThemisFairness(Study):
    """Themis with four values of f and three lengths of leases beside policies that do not look at finish-time fairness."""

    name = "themis-fairness"
    paper = "Mahajan et al.: Themis: Fair and Efficient GPU Cluster Scheduling (NSDI 2020)"
    figure = "Finish-time fairness against the knob f and the length of leases"
    what = (
        "Jobs of 1 to 8 GPUs and ten minutes to six hours on 32 GPUs (8x4) at full load, a start costs 30 s, leases of 20 minutes unless "
        "stated otherwise; mean over seeds. The paper's workload is not public, so these are its shapes on a workload of ours. Rho is by "
        "the definition 'share': completion time over that alone on an equal part of the cluster."
    )

    terms = claim_terms(
        {
            "the worst rho falls with f": ("the next smaller f", "2 %: it never rises by more"),
            "fairer than schedulers that do not look at it": ("the lowest worst rho of FIFO, LAS and SRTF", "none"),
            "shorter leases restart more": ("the next longer lease", "none: strictly more"),
            "worst rho, the fairest baseline over Themis": ("the lowest worst rho of FIFO, LAS and SRTF", "10 %"),
            "no job fares much worse than alone": ("an equal part of the cluster", "10 % above a rho of 1.2"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        jobs, nodes = (80, 8) if scale == "full" else (30, 4)
        made = {
            "jobs": jobs,
            "gpus": 4 * nodes,
            "load": 1.0,
            "sizes": "1:0.4,2:0.25,4:0.25,8:0.1",
            "durations": "loguniform(10m-6h:1)",
        }
        base = Setting(TraceSource(generator="generic", settings=made), f"{nodes}x4", "themis", costs="30", placement="consolidated")
        policies = [PolicyChoice(name) for name in _BASELINES]
        policies += [PolicyChoice("themis", {"f": f}, _knob(f)) for f in _KNOB[scale]]
        policies += [PolicyChoice("themis", {"lease": seconds}, _lease(seconds)) for seconds in _LEASES]
        return Grid(base, tuple(policies), seeds=tuple(range(6)) if scale == "full" else (0,)).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        table = self.table(results)
        worst = dict(table.select("policy", "worst rho").iter_rows())
        restarts = dict(table.select("policy", "restarts").iter_rows())
        knobs = [worst[_knob(f)] for f in _KNOB[scale]]
        name = min(_BASELINES, key=lambda one: worst[one])
        fair, factor = worst[_knob(0.8)], worst[name] / worst[_knob(0.8)]
        leases = [restarts[one] for one in (_lease(300), _knob(0.8), _lease(2400))]
        falling = ", ".join(f"{rho:.2f} at f={f:g}" for f, rho in zip(_KNOB[scale], knobs))
        text = f"{', '.join(f'{number:.0f}' for number in leases)} restarts at 5, 20, 40 min"
        return [
            Claim("the worst rho falls with f", "falls", falling, all(after <= _STEADY * before for before, after in pairwise(knobs))),
            Claim(
                "fairer than schedulers that do not look at it", "fairer", f"{fair:.2f} against {worst[name]:.2f} of {name}", factor > 1.0
            ),
            Claim("shorter leases restart more", "more", text, all(short > long for short, long in pairwise(leases))),
            Claim.number("worst rho, the fairest baseline over Themis", 2.25, factor),
            Claim("no job fares much worse than alone", "about 1.2 at most", f"at most {fair:.2f}", fair <= 1.2 * (1 + WITHIN), True),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        columns = {"rho_max": "worst rho", "rho_mean": "mean rho", "jct_mean": "JCT s", "restarts": "restarts"}
        return mean_table(results, ("policy",), columns)
