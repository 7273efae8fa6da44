"""Sia (Jayaram Subramanya et al., SOSP 2023), tables 3 and 4: Sia and its baselines on a mixed and on a uniform cluster of 64 GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.reproduction import (
    WITHIN,
    Case,
    Claim,
    ClaimTerms,
    Grid,
    PolicyChoice,
    Scale,
    Setting,
    Study,
    Sweep,
    TraceSource,
    claim_terms,
)

_ROUNDED = 0.05  # hours: the paper rounds to tenths
_ALIKE = {"full": 0.1, "small": 0.25}  # a few jobs show less
_SIA, _POLLUX, _GAVEL, _SHOCKWAVE, _THEMIS = "Sia", "Pollux", "Gavel+TJ", "Shockwave+TJ", "Themis+TJ"
_POLICIES: Mapping[str, tuple[str, float]] = {
    _SIA: ("sia", 60.0),
    _POLLUX: ("pollux", 60.0),
    _GAVEL: ("gavel.max_sum_throughput_perf", 360.0),
    _SHOCKWAVE: ("shockwave", 360.0),
    _THEMIS: ("gavel.finish_time_fairness", 360.0),
}
_SETTINGS: Mapping[str, dict[str, float]] = {_SHOCKWAVE: {"makespan": 1e-9, "power": 12.0}}  # those of Sia's port
_QUICK: Mapping[str, dict[str, float]] = {_POLLUX: {"size": 20, "generations": 20}}


@dataclass(frozen=True)
class Published:
    """A row of the paper's tables, in hours."""

    jct: float
    p99: float
    makespan: float
    gpu_hours: float
    contention: str = ""


class SiaTable(Study):
    """Base of both tables: workloads that the authors drew from published traces, jobs that run by their profiles."""

    paper = "Jayaram Subramanya et al.: Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling (SOSP 2023)"
    needs = "workloads/philly/workload-1.csv"
    needs_from = "the artifact siasosp23/artifacts, as profiles/APPLICATION/ and workloads/{philly,saturn,newtrace}/"
    cluster: ClassVar[str]
    workloads: ClassVar[Mapping[str, int]]
    """How many workloads of each trace are run at full scale."""
    few: ClassVar[Mapping[str, int]]
    """The same at small scale."""
    jobs = 8
    """How many jobs of a workload at small scale."""
    published: ClassVar[Mapping[tuple[str, str], Published]]
    """By trace and policy."""
    policies: ClassVar[tuple[str, ...]] = (_SIA, _POLLUX, _GAVEL)
    alike: ClassVar[tuple[str, ...]] = ()
    """Which policies are as good as Sia."""

    terms = claim_terms(
        {
            **{f"Sia is ahead of {name}": (name, "none") for name in (_POLLUX, _GAVEL, _SHOCKWAVE, _THEMIS)},
            f"{_POLLUX} has about the same average JCT as Sia": ("Sia", "10 %; 25 % at small scale"),
            **{f"average JCT of {name} over that of Sia": ("the paper's table", "10 %") for name in (_POLLUX, _GAVEL, _SHOCKWAVE, _THEMIS)},
        }
    )
    number_terms: ClassVar[ClaimTerms] = ClaimTerms("the paper's table", "10 % and 0.05 h, since it rounds to tenths")

    def cases(self, scale: Scale) -> list[Case]:
        root = self.needed().parents[2]
        counts = self.workloads if scale == "full" else self.few
        return [case for trace, count in counts.items() for n in range(1, count + 1) for case in self._cases(root, trace, n, scale)]

    def _cases(self, root: Path, trace: str, number: int, scale: Scale) -> list[Case]:
        options = {} if scale == "full" else {"first": self.jobs}
        source = TraceSource(file=str(root / "workloads" / trace / f"workload-{number}.csv"), format="pollux", settings=options)
        found = []
        for title in self.policies:
            policy, interval = _POLICIES[title]
            settings = _SETTINGS.get(title, {}) if scale == "full" else _SETTINGS.get(title, {}) | _QUICK.get(title, {})
            base = Setting(source, self.cluster, policy, regime="sia", round=interval, profiles=str(root / "profiles"))
            made = Grid(base, (PolicyChoice(policy, settings, name=title),)).cases()
            found += [replace(case, axes={"trace": trace, "workload": number, **case.axes}) for case in made]
        return found

    def read(self, sweep: Sweep) -> pl.DataFrame:
        """A row per trace and policy, in hours: jobs of all workloads together, makespan and contention as means over workloads."""
        groups: dict[tuple[str, str], list[int]] = {}
        for k, case in enumerate(sweep.cases):
            groups.setdefault((str(case.axes["trace"]), case.policy), []).append(k)
        rows = []
        for (trace, policy), members in groups.items():
            jobs = pl.concat([sweep.jobs(sweep.cases[k]) for k in members])
            summaries = [sweep.records[k].summary for k in members]
            jct = (jobs["jct"] / 3600).sort()
            rows.append(
                {
                    "trace": trace,
                    "policy": policy,
                    "jct": float(jct.sum() / len(jct)),
                    "p99": float(jct[int(0.99 * len(jct))]),
                    "makespan": sum(one["makespan"] for one in summaries) / len(summaries) / 3600,
                    "gpu_hours": float(jobs["gpu_seconds"].sum()) / 3600 / len(jobs),
                    "restarts": float(jobs["restarts"].sum()) / len(jobs),
                    "contention": sum(one["contention_mean"] for one in summaries) / len(summaries),
                    "contention_max": max(one["contention_max"] for one in summaries),
                    "state": "done",
                }
            )
        return pl.DataFrame(rows)

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        found = {(row["trace"], row["policy"]): row for row in results.iter_rows(named=True)}
        claims = []
        for trace in dict.fromkeys(trace for trace, _ in found):
            claims += [self._against(trace, policy, found, scale) for policy in self.policies if policy != _SIA]
            if scale == "full":
                claims += [self._factor(trace, policy, found) for policy in self.policies if policy != _SIA]
                claims += self._numbers(trace, found[trace, _SIA])
        return claims

    def _against(self, trace: str, policy: str, found: Mapping[tuple[str, str], dict[str, float]], scale: Scale) -> Claim:
        """Which policy has the lower average JCT, and by how much."""
        expected = self.published[trace, policy].jct / self.published[trace, _SIA].jct
        factor = found[trace, policy]["jct"] / found[trace, _SIA]["jct"]
        alike = policy in self.alike
        statement = f"{trace}: {policy} has about the same average JCT as Sia" if alike else f"{trace}: Sia is ahead of {policy}"
        holds = abs(factor - 1) <= _ALIKE[scale] if alike else factor > 1
        return Claim(statement, f"{expected:.2f} times", f"{factor:.2f} times", holds)

    def _factor(self, trace: str, policy: str, found: Mapping[tuple[str, str], dict[str, float]]) -> Claim:
        """The same factor as a number."""
        expected = self.published[trace, policy].jct / self.published[trace, _SIA].jct
        factor = found[trace, policy]["jct"] / found[trace, _SIA]["jct"]
        return Claim.number(f"{trace}: average JCT of {policy} over that of Sia", round(expected, 2), factor)

    def _numbers(self, trace: str, row: dict[str, float]) -> list[Claim]:
        """Sia's averages beside the paper's."""
        paper, claims = self.published[trace, _SIA], []
        for what, theirs, ours in (
            ("average JCT", paper.jct, row["jct"]),
            ("makespan", paper.makespan, row["makespan"]),
            ("GPU-hours per job", paper.gpu_hours, row["gpu_hours"]),
        ):
            holds = abs(ours - theirs) <= WITHIN * theirs + _ROUNDED
            shown = f"{ours:.2f} h ({100 * (ours / theirs - 1):+.0f} %)"
            claims.append(Claim(f"{trace}: {what} of Sia", f"{theirs:g} h", shown, holds, is_number=True))
        return claims

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        rows = []
        for row in results.iter_rows(named=True):
            paper = self.published[row["trace"], row["policy"]]
            shown = {
                "JCT h": (row["jct"], paper.jct),
                "p99 h": (row["p99"], paper.p99),
                "makespan h": (row["makespan"], paper.makespan),
                "GPU-h/job": (row["gpu_hours"], paper.gpu_hours),
            }
            cells = {name: f"{ours:.2f} ({theirs:g})" for name, (ours, theirs) in shown.items()}
            contention = f"{row['contention']:.1f}, at most {row['contention_max']}" + (
                f" ({paper.contention})" if paper.contention else ""
            )
            rows.append({"trace": row["trace"], "policy": row["policy"], **cells, "jobs there": contention, "restarts": row["restarts"]})
        return pl.DataFrame(rows)


class SiaHeterogeneous(SiaTable):
    """Table 3: three GPU types."""

    name = "sia-heterogeneous"
    figure = "Table 3: Sia, Pollux and Gavel on 24 T4, 24 RTX 2080 Ti and 16 A100 GPUs"
    what = (
        "Workloads of 160 jobs in eight hours (four of philly, three of saturn, which the paper calls Helios) and one of 960 in two "
        "days (newtrace) in the clock of Sia's simulator; the paper pools ten of each. Ours and in brackets the paper's. Pollux is the "
        "form that knows no GPU types. Gavel is max-sum-throughput on tuned jobs by the text of its own paper; the artifact restarts "
        "jobs more often (7.4 times each on saturn), and there it is slower; on two shorter workloads its last job ends 12 % later and "
        "13 % earlier here than there."
    )
    cluster = "aws:6x4,rtx:3x8,dgx-ext:2x8"
    workloads: ClassVar[Mapping[str, int]] = {"philly": 4, "saturn": 3, "newtrace": 1}
    few: ClassVar[Mapping[str, int]] = {"philly": 1, "saturn": 1}
    published: ClassVar[Mapping[tuple[str, str], Published]] = {
        ("philly", _SIA): Published(0.6, 9.5, 14.2, 4.0, "6.9, 31"),
        ("philly", _POLLUX): Published(1.0, 14.9, 24.5, 5.6, "7.2, 42"),
        ("philly", _GAVEL): Published(1.9, 30.0, 33.8, 9.0, "9.9, 56"),
        ("saturn", _SIA): Published(0.7, 10.9, 14.9, 4.8, "7.4, 32"),
        ("saturn", _POLLUX): Published(1.0, 15.0, 25.5, 5.9, "6.9, 47"),
        ("saturn", _GAVEL): Published(2.5, 38.7, 43.0, 12.1, "9.2, 48"),
        ("newtrace", _SIA): Published(0.7, 4.6, 52.2, 3.0, "13, 69"),
        ("newtrace", _POLLUX): Published(1.5, 10.3, 62.3, 3.4, "22, 85"),
        ("newtrace", _GAVEL): Published(11.3, 98.1, 110.0, 6.4, "96, 243"),
    }


class SiaHomogeneous(SiaTable):
    """Table 4: one GPU type."""

    name = "sia-homogeneous"
    figure = "Table 4: Sia, Pollux, Shockwave, Themis and Gavel on 64 T4 GPUs, Philly workloads"
    what = (
        "Four philly workloads on 16 nodes of four T4 in the clock of Sia's simulator; the paper pools ten. Ours and in brackets the "
        "paper's. Shockwave (with the constants of Sia's port) and Themis (finish-time fairness in Gavel's rounds) run tuned jobs in "
        "rounds of 360 s; the paper does not say theirs."
    )
    cluster = "aws:16x4"
    workloads: ClassVar[Mapping[str, int]] = {"philly": 4}
    few: ClassVar[Mapping[str, int]] = {"philly": 1}
    jobs = 12
    policies: ClassVar[tuple[str, ...]] = (_SIA, _POLLUX, _GAVEL, _SHOCKWAVE, _THEMIS)
    alike: ClassVar[tuple[str, ...]] = (_POLLUX,)
    published: ClassVar[Mapping[tuple[str, str], Published]] = {
        ("philly", _SIA): Published(1.9, 18.1, 21.4, 8.4),
        ("philly", _POLLUX): Published(2.0, 19.3, 21.7, 8.6),
        ("philly", _GAVEL): Published(4.3, 37.1, 44.3, 15.3),
        ("philly", _SHOCKWAVE): Published(3.6, 32.8, 35.0, 12.5),
        ("philly", _THEMIS): Published(5.4, 44.7, 49.7, 17.2),
    }
