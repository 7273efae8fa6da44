"""Shockwave (Zheng et al., NSDI 2023): makespan and average completion time of 120 jobs on 32 GPUs, with and without told futures."""

from __future__ import annotations

import polars as pl

from gantline.lab.experiment.reproduction import Case, Claim, Grid, PolicyChoice, Scale, Setting, Study, TraceSource, claim_terms

_TOLD, _CALM, _LEARNED = "Shockwave", "Shockwave, no calibration", "Shockwave, futures learned"
#: published makespan and mean JCT in seconds, and how far from each a free run may be
PUBLISHED: dict[str, tuple[float, float, float, float]] = {
    "Gandiva-Fair": (32367.4, 12574.3, 0.0001, 0.0001),
    "max-min fairness": (33207.7, 11274.1, 0.01, 0.005),
    "AlloX": (32488.6, 9926.3, 0.01, 0.01),
    "MST": (31909.0, 9654.7, 0.02, 0.02),
    "Themis (finish-time fairness)": (31928.7, 11302.0, 0.02, 0.035),
    "OSSP": (24204.8, 19806.7, 0.0001, 0.0001),
    _TOLD: (24197.4, 9958.5, 0.04, 0.02),
}
_POLICIES = (
    PolicyChoice("gavel.gandiva_fair", {}, "Gandiva-Fair"),
    PolicyChoice("gavel.max_min_fairness", {}, "max-min fairness"),
    PolicyChoice("gavel.allox", {}, "AlloX"),
    PolicyChoice("gavel.max_sum_throughput_perf", {}, "MST"),
    PolicyChoice("gavel.finish_time_fairness", {}, "Themis (finish-time fairness)"),
    PolicyChoice("gavel.min_total_duration", {}, "OSSP"),
    PolicyChoice("shockwave", {"compat": "shockwave"}, _TOLD),
    PolicyChoice("shockwave", {"futures": "told"}, _CALM),
    PolicyChoice("shockwave", {}, _LEARNED),
)


class ShockwaveTable(Study):
    """Shockwave, its repaired forms and six baselines in the clock of its simulator."""

    name = "shockwave-table"
    paper = "Zheng et al.: Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in ML (NSDI 2023)"
    figure = "Makespan and average JCT of the published simulations, 120 jobs on 32 GPUs"
    what = (
        "The published trace of 120 jobs with its table of speeds in the clock of the authors' simulator. Numbers are those of the runs "
        "that were published with the program; where a solver's choice among equals decides, a free run differs. Beside it Shockwave "
        "without its calibration, which counts waiting as running, and with batch sizes learned as they come, not told beforehand."
    )
    needs = "isolated_throughput_tacc.csv"
    needs_from = "the repository uw-mad-dash/shockwave, with its trace of 120 jobs in a folder traces beside it"

    terms = claim_terms(
        {
            **{
                f"{name}: makespan, average JCT": ("the published run", f"{100 * makespan:g} % of the makespan, {100 * jct:g} % of the JCT")
                for name, (_, _, makespan, jct) in PUBLISHED.items()
            },
            "Shockwave has a shorter makespan than the fair baselines": ("the best of them; OSSP looks at makespan alone", "none"),
            "not being told batch sizes to come costs a little": ("Shockwave without calibration, futures told", "10 % of the average JCT"),
            "max-min fairness takes longer than Gandiva-Fair": ("Gandiva-Fair", "none"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        speeds = self.needed()
        trace = next(iter(sorted(speeds.parent.rglob("120_0.2_5_100_*.trace"))), speeds.with_name("120_0.2_5_100.trace"))
        source = TraceSource(file=str(trace), format="gavel")
        base = Setting(source, "v100:32", "shockwave", regime="shockwave", throughputs=str(speeds))
        return Grid(base, _POLICIES if scale == "full" else _POLICIES[:3]).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = {name: (makespan, jct) for name, makespan, jct in results.select("policy", "makespan", "jct_mean").iter_rows()}
        claims = []
        for name, (makespan, jct, most, off) in PUBLISHED.items():
            if name in rows:
                found, mean = rows[name]
                text = f"{found:,.0f} s ({100 * (found / makespan - 1):+.2f} %), {mean:,.0f} s ({100 * (mean / jct - 1):+.2f} %)"
                near = abs(found / makespan - 1) <= most and abs(mean / jct - 1) <= off
                claims.append(Claim(f"{name}: makespan, average JCT", f"{makespan:,.0f} s, {jct:,.0f} s", text, near, is_number=True))
        if scale == "small":
            longer = rows["max-min fairness"][0] > rows["Gandiva-Fair"][0]
            text = f"{rows['max-min fairness'][0]:,.0f} and {rows['Gandiva-Fair'][0]:,.0f} s"
            return [*claims, Claim("max-min fairness takes longer than Gandiva-Fair", "33,208 and 32,367 s", text, longer)]
        others = min(rows[name][0] for name in ("Gandiva-Fair", "max-min fairness", "AlloX", "MST", "Themis (finish-time fairness)"))
        gain = others / rows[_TOLD][0]
        said = f"{gain:.2f} times the next but OSSP"
        claims.append(Claim("Shockwave has a shorter makespan than the fair baselines", "shorter", said, gain > 1.0))
        claims.append(Claim.number("makespan, the best fair baseline over Shockwave", 1.3, gain))
        lost = rows[_LEARNED][1] / rows[_CALM][1] - 1
        text = f"{100 * (rows[_LEARNED][0] / rows[_CALM][0] - 1):+.1f} % makespan, {100 * lost:+.1f} % average JCT"
        claims.append(Claim("not being told batch sizes to come costs a little", "not published", text, lost < 0.1))
        return claims

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        columns = {"makespan": "makespan s", "jct_mean": "JCT s", "utilization": "utilization"}
        return results.select("policy", *columns).rename(columns)
