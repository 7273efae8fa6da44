"""Dally (arXiv 2401.16492): to wait for machines that are near each other, not at all, for ever, or for a tuned time."""

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

_SLOW = "trace.slow"
_NETWORKS = (0.25, 1, 3)
_NONE, _EVER, _TUNED, _SKEW, _ROBIN = "no wait", "full consolidation", "tuned waits", "tiresias, by skew", "gandiva, best effort"
_NEAR, _APART = 1.25, 1.0


class DallyDelays(Study):
    """The policy with its four kinds of waits beside Tiresias and Gandiva, on networks of three speeds."""

    name = "dally-delays"
    paper = "Sharma et al.: Dally: GPU Cluster Scheduling for Network-Sensitive Deep Learning (arXiv 2401.16492)"
    figure = "Completion, queueing and communication with and without delays, by bandwidth between racks"
    what = (
        "512 GPUs in 8 racks of 8 machines with 8 each, gangs of 1 to 64 GPUs and ten minutes to six hours at a load of 0.8. Half of them "
        "take two to five times as long for an iteration across racks; on the fast network what crossing racks adds is a quarter of "
        "that, on the slow one three times. Starts and moves cost 30 s, rounds of 60 s, mean over seeds. The paper's workload and "
        "program are not public, so these are its shapes on a workload of ours, whose sizes, and the timers until "
        "there are waits to tune by, were chosen on its first seed; communication is GPU-hours beyond those that one "
        "machine would take."
    )
    load = _SLOW
    load_unit = "times"

    terms = claim_terms(
        {
            "on a fast network jobs queue least without a wait": ("full consolidation and tuned waits", "none"),
            "without a wait most time goes to communication": ("full consolidation and tuned waits", "none, on every network"),
            "tuned waits are near the better of both": ("the better of no wait and full consolidation", "25 %, on every network"),
            "what tuned waits gain over none grows as the network slows": ("the next faster network", "none"),
            "sooner than policies that wait for ever or not at all": ("Tiresias by skew and Gandiva", "none, on every network"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        jobs, racks = (300, 8) if scale == "full" else (60, 4)
        made = {"jobs": jobs, "gpus": 64 * racks, "load": 0.8, "durations": "loguniform(10m-6h:1)"}
        base = Setting(TraceSource(generator="dally", settings=made), f"{8 * racks}x8@8/rack", "dally-like", costs="30", round=60.0)
        base = base.with_value("performance", "placement-tiers")
        seeds = tuple(range(5)) if scale == "full" else (0,)
        waits = {_NONE: "none", _EVER: "consolidate", _TUNED: "tuned"}
        own = tuple(PolicyChoice("dally-like", {"wait": wait}, name) for name, wait in waits.items())
        found = Grid(base, own, seeds=seeds, vary={_SLOW: _NETWORKS}).cases()
        for policy, name, placement in (("tiresias", _SKEW, "skew"), ("gandiva", _ROBIN, "consolidated:preferred")):
            found += Grid(
                base.with_value("placement", placement), (PolicyChoice(policy, {}, name),), seeds=seeds, vary={_SLOW: _NETWORKS}
            ).cases()
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        table = {(row["times"], row["policy"]): row for row in self.table(results).iter_rows(named=True)}

        def of(column: str, name: str) -> list[float]:
            return [table[network, name][column] for network in map(float, _NETWORKS)]

        none, ever, tuned = (of("JCT s", name) for name in (_NONE, _EVER, _TUNED))
        queue = [of("queueing s", name)[0] for name in (_NONE, _EVER, _TUNED)]
        spent = list(zip(*(of("GPU-hours", name) for name in (_NONE, _EVER, _TUNED))))
        near = [mine / min(others) for mine, *others in zip(tuned, none, ever)]
        gains = [without / mine for without, mine in zip(none, tuned)]
        best = [min(others) / mine for mine, *others in zip(tuned, of("JCT s", _SKEW), of("JCT s", _ROBIN))]
        return [
            Claim(
                "on a fast network jobs queue least without a wait",
                "least",
                "{:.0f} s, {:.0f} s consolidated, {:.0f} s tuned".format(*queue),
                queue[0] <= min(queue),
            ),
            Claim(
                "without a wait most time goes to communication",
                "most",
                f"{min(most / max(others) for most, *others in spent):.2f} to {max(most / max(others) for most, *others in spent):.2f} "
                "times the GPU-hours",
                all(most > max(others) for most, *others in spent),
            ),
            Claim("tuned waits are near the better of both", "near", _range(near), max(near) <= _NEAR),
            Claim("what tuned waits gain over none grows as the network slows", "grows", _range(gains), gains == sorted(set(gains))),
            Claim("sooner than policies that wait for ever or not at all", "sooner", _range(best), min(best) > _APART),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        columns = {
            "jct_mean": "JCT s",
            "jct_p95": "P95 s",
            "makespan": "makespan s",
            "queueing_mean": "queueing s",
            "gpu_hours": "GPU-hours",
        }
        means = mean_table(results, (_SLOW, "policy"), columns)
        return means.select(pl.col(_SLOW).cast(pl.Float64).alias("times"), "policy", *columns.values())


def _range(times: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in times) + " times on networks from fast to slow"
