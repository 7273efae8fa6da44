"""Gavel's figures on continuous traces, and the cluster, the jobs and the names of its simulations (OSDI 2020, section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep
from gantline.lab.experiment.trace_source import TraceSource

LOAD = "trace.jobs_per_hour"
CLUSTER = "v100:36,p100:36,k80:36"
SMALL = "v100:8,p100:8,k80:8"
WITHIN = 0.05  # of the numbers that the authors stored with their program
PAPER = "Narayanan et al.: Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads (OSDI 2020)"


class GavelStudy(Study):
    """Base of the studies on Gavel's jobs: speeds are those that the authors measured."""

    paper: ClassVar[str] = PAPER
    needs: ClassVar[str] = "simulation_throughputs.json"
    needs_from: ClassVar[str] = "the simulator folder of the repository stanford-futuredata/gavel"
    load: ClassVar[str] = LOAD
    load_unit: ClassVar[str] = "jobs/h"

    def setting(self, scale: Scale, jobs: Mapping[str, Any], **more: Any) -> Setting:
        """A run of Gavel's simulator; the small scale has fewer devices."""
        source = TraceSource(generator="gavel", settings=dict(jobs))
        cluster = more.pop("cluster", CLUSTER if scale == "full" else SMALL)
        return Setting(source, cluster, "gavel.isolated", regime="gavel", throughputs=str(self.needed()), **more)


def as_published(name: str, policy: str, **settings: Any) -> PolicyChoice:
    """A policy by the rules of the artifact, under the name that the figure gives it."""
    return PolicyChoice(f"gavel.{policy}", {"compat": "gavel", **settings}, name)


def hours(results: pl.DataFrame, axis: str, column: str = "jct_mean") -> dict[str, dict[float, float]]:
    """Mean hours over seeds of every policy at every place of the axis."""
    means = results.group_by("policy", axis, maintain_order=True).agg((pl.col(column) / 3600).mean().alias("value"))
    found: dict[str, dict[float, float]] = {}
    for policy, place, value in means.sort(axis).iter_rows():
        found.setdefault(policy, {})[float(place)] = float(value)
    return found


def table_of(results: pl.DataFrame, axis: str, column: str = "jct_mean") -> pl.DataFrame:
    """Hours, a row per place of the axis, a column per policy."""
    rows = hours(results, axis, column)
    places = sorted({place for values in rows.values() for place in values})
    return pl.DataFrame(
        {axis.rpartition(".")[2].replace("_", " "): places} | {name: [v.get(p) for p in places] for name, v in rows.items()}
    )


def ahead(
    statement: str, found: Mapping[str, Mapping[float, float]], better: str, worse: str, published: str, at_least: float = 1.0
) -> Claim:
    """One policy has lower numbers than another at the largest common place of the axis, by that factor at least."""
    place = max(set(found[better]) & set(found[worse]))
    factor = found[worse][place] / found[better][place]
    return Claim(statement, published, f"{factor:.2f} times at {place:g}", factor >= at_least)


def near_stored(found: Mapping[str, Mapping[float, float]], stored: Mapping[str, Mapping[float, float]], unit: str) -> list[Claim]:
    """Numbers against those that the authors stored, a claim per policy."""
    claims = []
    for policy, points in stored.items():
        both = {place: (value, found[policy][place]) for place, value in points.items() if place in found.get(policy, {})}
        if both:
            worst = max(both, key=lambda place: abs(both[place][1] / both[place][0] - 1))
            theirs, ours = both[worst]
            text = f"{100 * (ours / theirs - 1):+.1f} % at worst ({worst:g} {unit}: {ours:.2f})"
            holds = abs(ours / theirs - 1) <= WITHIN
            shown = ", ".join(f"{value:g}" for value, _ in both.values())
            claims.append(Claim(f"{policy} at {', '.join(f'{p:g}' for p in both)} {unit}", f"{shown} h", text, holds, is_number=True))
    return claims


# Gavel, Figures 8 and 9: least attained service against load, with jobs of one device and of several.

_LAS = as_published("LAS", "max_min_fairness")
_GAVEL = as_published("Gavel LAS", "max_min_fairness_perf")
_SHARED = as_published("Gavel LAS with space sharing", "max_min_fairness_packed")
_GANDIVA = as_published("Gandiva", "gandiva")


class GavelSingle(GavelStudy):
    """Every job wants one device."""

    name: ClassVar[str] = "gavel-single"
    figure: ClassVar[str] = "Figure 8: average JCT against load under LAS, continuous trace, jobs of one GPU"
    what: ClassVar[str] = (
        "36 V100, 36 P100 and 36 K80, Poisson arrivals, jobs 4000 to 5000 tracked, the jobs of Gavel's own generator with seed 0, in "
        "Gavel's way of counting rounds with all slips of its program. Published numbers are those that the authors stored with it, at "
        "loads below saturation. Shares are computed at most every 1,920 s, as in its last version, those of AlloX in every round: its "
        "stored numbers fit that (with 1,920 s it is 5.2 % behind them at 4 jobs/h)."
    )
    policies: ClassVar[tuple[PolicyChoice, ...]] = (_LAS, _GAVEL, _SHARED, as_published("AlloX", "allox", spacing=0.0), _GANDIVA)
    multi: ClassVar[bool] = False
    loads: ClassVar[tuple[float, ...]] = (0.4, 2.0, 4.0, 4.8, 5.2)
    small_loads: ClassVar[tuple[float, ...]] = (0.6, 1.7)
    stored: ClassVar[dict[str, dict[float, float]]] = {
        "LAS": {0.4: 23.26, 2.0: 23.47, 4.0: 23.49},
        "Gavel LAS": {0.4: 17.58, 2.0: 16.95, 4.0: 16.82, 4.8: 18.97},
        "Gavel LAS with space sharing": {0.4: 18.42, 2.0: 18.26, 4.0: 16.96, 4.8: 18.67},
        "AlloX": {0.4: 17.58, 2.0: 16.93, 4.0: 17.13},
        "Gandiva": {0.4: 17.58, 2.0: 17.61, 4.0: 18.88},
    }
    factor: ClassVar[float] = 2.9
    gain: ClassVar[str] = "63.78 h against 22.02 h, 2.9 times at 5.2 (up to 3.5 in the paper)"

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "knowing speeds helps at every load": ClaimTerms("LAS", "none, at every load"),
        "and most at high load": ClaimTerms("LAS", "at least 1.25 times at the highest load"),
        "space sharing helps when devices are short": ClaimTerms("Gavel LAS", "none, at the highest load"),
        "random packing is no match": ClaimTerms("Gandiva", "none, at the highest common load"),
        "LAS over Gavel LAS at the highest load": ClaimTerms("the paper's figure", "10 %"),
    }
    number_terms: ClassVar[ClaimTerms] = ClaimTerms("numbers stored with the authors' program", "5 %")

    def cases(self, scale: Scale) -> list[Case]:
        jobs, track = (7500, (4000, 5000)) if scale == "full" else (120, (40, 80))
        base = self.setting(scale, {"jobs": jobs, "multi_gpu": self.multi}, track=track)
        return Grid(base, self.policies, vary={LOAD: self.loads if scale == "full" else self.small_loads}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        found = hours(results, LOAD)
        always = all(found["Gavel LAS"][load] < found["LAS"][load] for load in found["LAS"])
        most = max(found["LAS"][load] / found["Gavel LAS"][load] for load in found["LAS"])
        claims = [
            Claim("knowing speeds helps at every load", "Gavel LAS below LAS", f"up to {most:.2f} times", always),
            ahead("and most at high load", found, "Gavel LAS", "LAS", self.gain, 1.25),
            ahead("space sharing helps when devices are short", found, "Gavel LAS with space sharing", "Gavel LAS", "ahead", 1.0),
            ahead("random packing is no match", found, "Gavel LAS", "Gandiva", "behind", 1.0),
        ]
        if scale == "small":
            return claims
        last = max(found["LAS"])
        factor = Claim.number("LAS over Gavel LAS at the highest load", self.factor, found["LAS"][last] / found["Gavel LAS"][last])
        return [*claims, factor, *near_stored(found, self.stored, "jobs/h")]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return table_of(results, LOAD)


class GavelMulti(GavelSingle):
    """Three jobs in ten are gangs of 2, 4 or 8."""

    name: ClassVar[str] = "gavel-multi"
    figure: ClassVar[str] = "Figure 9: average JCT against load under LAS, continuous trace, gangs of one to eight GPUs"
    what: ClassVar[str] = (
        "As gavel-single, with 30 % of the jobs as gangs of 2, 4 or 8 devices. The program cannot pack jobs of mixed gang sizes at its "
        "last version; the stored numbers of space sharing come from an earlier one. All stored numbers here belong to another sequence of "
        "jobs than its last version draws: at 0.4 jobs/h, where nobody waits, their mean is 18.6 h, ours 17.8 h, and the distance grows "
        "with the load."
    )
    policies: ClassVar[tuple[PolicyChoice, ...]] = (_LAS, _GAVEL, _SHARED, _GANDIVA)
    multi: ClassVar[bool] = True
    loads: ClassVar[tuple[float, ...]] = (0.4, 1.2, 2.0, 2.4)
    small_loads: ClassVar[tuple[float, ...]] = (0.3, 0.8)
    stored: ClassVar[dict[str, dict[float, float]]] = {
        "LAS": {0.4: 25.92, 1.2: 26.10, 2.0: 28.91},
        "Gavel LAS": {0.4: 18.58, 1.2: 18.49, 2.0: 21.90, 2.4: 30.03},
        "Gavel LAS with space sharing": {0.4: 18.95, 1.2: 18.78, 2.0: 20.85, 2.4: 26.22},
        "Gandiva": {0.4: 18.59, 1.2: 19.23, 2.0: 25.16},
    }
    factor: ClassVar[float] = 1.29
    gain: ClassVar[str] = "38.71 h against 30.03 h, 1.29 times at 2.4; 1.9 at 2.6"


# Gavel, Figure 10: finish-time fairness with and without knowing speeds.

_ISOLATED = "isolated"


class GavelFinishTime(GavelStudy):
    """Themis' objective by Gavel's programs, and the ratio to a part of the cluster of one's own."""

    name: ClassVar[str] = "gavel-finish-time"
    figure: ClassVar[str] = "Figure 10: average JCT and finish-time fairness (rho), continuous trace, gangs of one to eight GPUs"
    what: ClassVar[str] = (
        "As gavel-multi, under finish-time fairness. Rho is what the authors' notebooks compute: a job's completion time over that of the "
        "same job in the same trace when everybody has the m-th part of the cluster (policy isolated)."
    )
    stored: ClassVar[dict[str, dict[float, float]]] = {
        "FTF": {0.4: 25.92, 2.0: 28.87},
        "Gavel FTF": {0.4: 18.57, 2.0: 21.80},
    }

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "knowing speeds shortens jobs": ClaimTerms("FTF", "at least 1.2 times at the highest load"),
        "and is fairer": ClaimTerms("FTF", "mean rho at least 1.2 times lower at the highest load"),
        "no job is worse off on average than on a part of its own": ClaimTerms("an equal part of the cluster", "none: mean rho below 1"),
        "average JCT, FTF over Gavel FTF at 2.6 jobs/h": ClaimTerms("the paper's figure", "10 %"),
        "mean rho, FTF over Gavel FTF at 2.6 jobs/h": ClaimTerms("the paper's figure", "10 %"),
    }
    number_terms: ClassVar[ClaimTerms] = ClaimTerms("numbers stored with the authors' program", "5 %")

    def cases(self, scale: Scale) -> list[Case]:
        jobs, track = (6500, (4000, 5000)) if scale == "full" else (120, (40, 80))
        policies = (
            as_published("FTF", "finish_time_fairness", tie="central"),
            as_published("Gavel FTF", "finish_time_fairness_perf", tie="central"),
            as_published(_ISOLATED, "isolated"),
        )
        base = self.setting(scale, {"jobs": jobs, "multi_gpu": True}, track=track)
        return Grid(base, policies, vary={LOAD: (0.4, 2.0, 2.6) if scale == "full" else (0.2, 0.5)}).cases()

    def read(self, sweep: Sweep) -> pl.DataFrame:
        alone = {case.axes[LOAD]: _jct(sweep, case) for case in sweep.cases if case.policy == _ISOLATED}
        rho: list[dict[str, Any]] = []
        for case in sweep.cases:
            both = _jct(sweep, case).join(alone[case.axes[LOAD]], on="job", suffix="_alone")
            rho.append({"hash": case.hash, "rho": (both["jct"] / both["jct_alone"]).mean()})
        return super().read(sweep).join(pl.DataFrame(rho), on="hash")

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        found = hours(results, LOAD)
        rho = {name: dict(rows.select(LOAD, "rho").iter_rows()) for (name,), rows in results.group_by("policy")}
        worst = max(rho["Gavel FTF"].values())
        claims = [
            ahead("knowing speeds shortens jobs", found, "Gavel FTF", "FTF", "1.9 times at 2.6 jobs/h", 1.2),
            ahead("and is fairer", rho, "Gavel FTF", "FTF", "mean rho 0.79 against 1.40 at 2.6 jobs/h", 1.2),
            Claim("no job is worse off on average than on a part of its own", "mean rho below 1", f"at most {worst:.2f}", worst < 1),
        ]
        if scale == "small":
            return claims
        factors = [
            Claim.number("average JCT, FTF over Gavel FTF at 2.6 jobs/h", 1.9, found["FTF"][2.6] / found["Gavel FTF"][2.6]),
            Claim.number("mean rho, FTF over Gavel FTF at 2.6 jobs/h", 1.4 / 0.79, rho["FTF"][2.6] / rho["Gavel FTF"][2.6]),
        ]
        return [*claims, *factors, *near_stored(found, self.stored, "jobs/h")]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        rho = results.pivot("policy", index=LOAD, values="rho").rename(lambda name: f"rho {name}" if name != LOAD else "jobs per hour")
        return table_of(results, LOAD).join(rho.drop(f"rho {_ISOLATED}"), on="jobs per hour")


def _jct(sweep: Sweep, case: Case) -> pl.DataFrame:
    """Completion times of the tracked jobs."""
    return sweep.jobs(case).filter(pl.col("tracked") & pl.col("jct").is_finite()).select("job", "jct")


# Gavel, section 7.5 and Figure 14: what it costs to estimate how fast pairs of jobs are together.

_ALONE, _MEASURED = "no sharing", "all measured"
_PAPER, _LEAST = (0.2, 16), (0.05, 4)  # part of the runs with reference jobs, number of those
_AMOUNTS = ((0.6, 16), _PAPER, (0.2, 8), _LEAST)


class GavelEstimation(GavelStudy):
    """Packed LAS that knows all pairs, and that estimates them from less and less profiling."""

    name: ClassVar[str] = "gavel-estimation"
    figure: ClassVar[str] = "Figure 14: average JCT with the throughput estimator, continuous trace, jobs of one GPU"
    what: ClassVar[str] = (
        "Gavel LAS with space sharing at 4.8 jobs/h, jobs 500 to 1000 tracked. A new job is profiled next to a part of the reference jobs, "
        "the rest of its row is completed and the nearest reference stands for it; a pair that has run is known from then on. The error is "
        "the mean difference of the ratio of speed together to speed alone, over all pairs, before anything has run. The program reads "
        "wrong columns when references are fewer than job types; here they are the right ones."
    )

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "estimates are nearly as good as measurements": ClaimTerms("all pairs measured", "10 % of the average JCT"),
        "less profiling, larger errors": ClaimTerms("20 % of 16 references", "none"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        policies = [as_published(_ALONE, "max_min_fairness_perf"), as_published(_MEASURED, "max_min_fairness_packed")]
        for part, count in _AMOUNTS if scale == "full" else (_PAPER, _LEAST):
            policies.append(as_published(_title(part, count), "max_min_fairness_packed", profiling=part, references=count))
        jobs, load, track = (1400, 4.8, (500, 1000)) if scale == "full" else (70, 1.8, (15, 45))
        base = self.setting(scale, {"jobs": jobs, "jobs_per_hour": load}, track=track)
        return Grid(base, tuple(policies), seeds=tuple(range(3 if scale == "full" else 2))).cases()

    def read(self, sweep: Sweep) -> pl.DataFrame:
        summaries = ((case.hash, record.summary) for case, record in zip(sweep.cases, sweep.records))
        entries = [{"hash": key, "error": summary.get("estimation_error", 0.0)} for key, summary in summaries]
        return super().read(sweep).join(pl.DataFrame(entries), on="hash")

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        jct, error = ({row["policy"]: row[name] for row in self.table(results).iter_rows(named=True)} for name in ("JCT h", "error"))
        paper, least = _title(*_PAPER), _title(*_LEAST)
        cost = jct[paper] / jct[_MEASURED] - 1
        found = f"{100 * cost:+.1f} % JCT with {paper}"
        errors = f"{error[paper]:.3f}, with {least} {error[least]:.3f}"
        return [
            Claim("estimates are nearly as good as measurements", "close to the oracle", found, abs(cost) < 0.1),
            Claim("less profiling, larger errors", "–", errors, bool(error[paper] < error[least])),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = [
            pl.col("error").mean(),
            (pl.col("jct_mean") / 3600).mean().alias("JCT h"),
            (pl.col("makespan") / 3600).mean().alias("end h"),
        ]
        return results.group_by("policy", maintain_order=True).agg(means)


def _title(part: float, count: int) -> str:
    return f"{100 * part:g} % of {count} references"


# Gavel, section 7.3: throughput for money, with and without deadlines.

_PRICES = "v100=0.74,p100=0.43,k80=0.135"
_SUM, _COST, _SLO = "throughput", "throughput per cost", "throughput per cost, deadlines"


class GavelCost(GavelStudy):
    """What jobs with deadlines cost under three goals."""

    name: ClassVar[str] = "gavel-cost"
    figure: ClassVar[str] = "Section 7.3: money spent and deadlines missed under total throughput, cost, and cost with SLOs"
    what: ClassVar[str] = (
        "Poisson arrivals of jobs of one GPU with deadlines of 1.2, 2 or 10 times their duration on a V100; prices per hour 0.74 (V100), "
        "0.43 (P100) and 0.135 (K80), which the program has for one cloud (the spot prices of the paper are not in its repository). Rules "
        "as repaired: the program compares a duration with an instant, which counts no miss at all of jobs that arrive late."
    )

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "money as a goal saves money": ClaimTerms("the sum of throughputs as a goal", "none"),
        "and misses more deadlines than with deadlines as limits": ClaimTerms("money with deadlines as limits", "none"),
        "with deadlines it still saves money": ClaimTerms("the sum of throughputs as a goal", "none"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        policies = (
            PolicyChoice("gavel.max_sum_throughput_perf", {}, _SUM),
            PolicyChoice("gavel.max_sum_throughput_normalized_by_cost_perf", {}, _COST),
            PolicyChoice("gavel.max_sum_throughput_normalized_by_cost_perf_SLOs", {}, _SLO),
        )
        jobs = {"jobs": 400, "jobs_per_hour": 3.0} if scale == "full" else {"jobs": 60, "jobs_per_hour": 0.8}
        base = self.setting(scale, {**jobs, "slos": True}, prices=_PRICES)
        return Grid(base, policies, seeds=tuple(range(3 if scale == "full" else 2))).cases()

    def read(self, sweep: Sweep) -> pl.DataFrame:
        entries = [{"hash": case.hash, "cost": record.summary["cost"]} for case, record in zip(sweep.cases, sweep.records)]
        return super().read(sweep).join(pl.DataFrame(entries), on="hash")

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        cost, missed = ({row["policy"]: row[name] for row in self.table(results).iter_rows(named=True)} for name in ("cost", "missed %"))
        saved, kept = cost[_SUM] / cost[_COST], cost[_SUM] / cost[_SLO]
        return [
            Claim("money as a goal saves money", "1.4 times less", f"{saved:.2f} times less", saved > 1),
            Claim("and misses more deadlines than with deadlines as limits", "more", f"{missed[_COST]:.0f} % against {missed[_SLO]:.0f} %",
                  missed[_COST] > missed[_SLO]),
            Claim("with deadlines it still saves money", "1.2 times less", f"{kept:.2f} times less", kept > 1),
            Claim.number("cost, throughput over money as a goal", 1.4, saved),
            Claim.number("cost, throughput over money with deadlines", 1.2, kept),
        ]  # fmt: skip

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        share = 100 * pl.col("deadline_misses") / pl.col("deadlines")
        means = [pl.col("cost").mean(), share.mean().alias("missed %"), (pl.col("jct_mean") / 3600).mean().alias("JCT h")]
        return results.group_by("policy", maintain_order=True).agg(means)
