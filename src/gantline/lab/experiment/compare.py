"""Compare policies on the same jobs: paired differences, intervals, a verdict in words.

With several seeds each seed is a pair, and the interval shows how far the mean change could be off because other seeds might have been
drawn: other jobs, or, where the trace is fixed, other draws of the run. One run is a number without an interval: nothing in it shows what
another trace would have given. All comparisons of a table are judged together (`significance`). Runs in doubt never win.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.experiment.intervals import USUAL, change_interval, check_confidence, ratio_error
from gantline.lab.experiment.results import SweepRuns, doubts_over, same_runs
from gantline.lab.experiment.verdict import Difference, Over, judged_together, verdict
from gantline.lab.report.frames import completed
from gantline.lab.report.metrics import BY_KEY, bounded_slowdown
from gantline.lab.whole_files import write_frame, write_text

METRICS = ("jct_mean", "jct_p95", "makespan")


@dataclass(frozen=True)
class Comparison:
    """Policies compared with one of them at one place of the other axes."""

    against: str
    place: dict[str, object]
    values: pl.DataFrame
    """A row per policy and seed with every metric."""
    runs: tuple[JobsOfRun, ...]
    load: float | None = None
    """The load that every seed is stretched to, where the generator does so."""
    differences: tuple[Difference, ...] = ()

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """A row per job, seed and policy with its times under both."""
        return paired_jobs(self.runs, self.against)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The differences as a table."""
        rows = [
            {
                **self.place,
                "policy": item.policy,
                "against": item.against,
                "metric": item.metric,
                "value": item.value,
                "value_against": item.value_against,
                "change": item.change.value,
                "low": item.change.low,
                "high": item.change.high,
                "confidence": item.change.confidence,
                "over": item.over,
                "samples": item.change.samples,
                "p": item.p,
                "comparisons": item.comparisons,
                "seeds_needed": item.needed,
                "doubts": item.doubts,
                "doubts_against": item.doubts_against,
            }
            for item in self.differences
        ]
        return pl.DataFrame(rows, schema_overrides={"seeds_needed": pl.Int64})

    @property
    def verdicts(self) -> list[str]:
        """A sentence per policy."""
        names = list(dict.fromkeys(item.policy for item in self.differences))
        return [verdict([item for item in self.differences if item.policy == name]) for name in names]


def check_asked(metrics: Sequence[str], confidence: float = USUAL) -> None:
    """Refuse metrics and levels that nothing can be compared by, before any run is made."""
    check_confidence(confidence)
    for name in metrics:
        if name not in BY_KEY or not BY_KEY[name].better:
            known = [key for key, metric in BY_KEY.items() if metric.better]
            raise NotFoundError(f"no metric '{name}' to compare by", where="metrics", fix=near(name, known))
    if twice := [name for at, name in enumerate(metrics) if name in metrics[:at]]:
        raise UsageError(f"'{twice[0]}' is named twice", where="metrics", fix="give each once: all comparisons are tested together")


def compare(sweep: SweepRuns, *, against: str = "", metrics: Sequence[str] = METRICS, confidence: float = USUAL) -> list[Comparison]:
    """A comparison for each place of the axes other than policy and seed; by default against the first policy."""
    check_asked(metrics, confidence)
    rows = sweep.results.with_row_index("index")
    policies = rows["policy"].unique(maintain_order=True).to_list()
    base = against or policies[0]
    if base not in policies:
        raise NotFoundError(f"no policy '{base}' among those compared", where="against", fix=near(base, policies))
    if len(policies) < 2:
        raise UsageError("there is only one policy", where="compare", fix="give at least two")
    outer = list(dict.fromkeys(name for case in sweep.cases for name in case.axes if name != "seed"))
    found = []
    for _, group in rows.group_by(outer, maintain_order=True) if outer else [((), rows)]:
        done = group.filter(pl.col("state") == "done")
        runs = tuple(JobsOfRun(row["policy"], row["seed"], sweep.records[row["index"]].jobs) for row in done.iter_rows(named=True))
        load = sweep.cases[group["index"][0]].setting.trace.load_of_every_seed()
        one = Comparison(base, {name: group[name][0] for name in outer}, done.drop("index"), runs, load)
        others = [name for name in group["policy"].unique(maintain_order=True).to_list() if name != base]
        found.append(replace(one, differences=tuple(_difference(one, name, metric, confidence) for name in others for metric in metrics)))
    together = judged_together([one.differences for one in found])
    return [replace(one, differences=differences) for one, differences in zip(found, together)]


def _difference(one: Comparison, policy: str, metric: str, confidence: float) -> Difference:
    both = one.values.filter(pl.col("policy").is_in([policy, one.against]))
    (old, new), copies = seed_columns(both, metric, policy, one.against), 1
    if same_runs(both):
        both = both.filter(pl.col("seed") == pl.col("seed").min())
        old, new, copies = old[:1], new[:1], len(new)
    change = change_interval(old, new, confidence)
    made = Difference(
        policy,
        one.against,
        metric,
        float(new.mean()) if new.size else math.nan,
        float(old.mean()) if old.size else math.nan,
        change,
        doubts=doubts_over(both, policy),
        doubts_against=doubts_over(both, one.against),
        copies=copies,
        uneven=_uneven(both, policy, one.against),
    )
    if len(new) > 1:
        over: Over = "seeds" if both["trace_hash"].n_unique() > 1 else "draws"
        return replace(made, over=over, spread=change.error * math.sqrt(len(new)), load=one.load if over == "seeds" else None)
    return replace(made, spread=spread_of_stretches(one.pairs, policy, metric)) if len(new) and metric in PER_JOB else made


def _uneven(rows: pl.DataFrame, policy: str, base: str) -> str:
    """A note if one of the two completed more jobs; else empty."""
    ended = {name: int(rows.filter(pl.col("policy") == name)["completed"].sum()) for name in (policy, base)}
    if ended[policy] == ended[base]:
        return ""
    counts = f"{policy} completed {ended[policy]:,} jobs, {base} {ended[base]:,}"
    return f" But {counts}: jobs that were turned away or failed count in no mean."


# Pairs: the same seed, or the same job of one run, under two policies.

PER_JOB = {
    "jct_mean": "jct",
    "queueing_mean": "queueing",
    "responsiveness_mean": "responsiveness",
    "slowdown_mean": "slowdown",
}
"""Metrics that are means over jobs, and the column whose mean they are."""
STRETCHES = 10

_NUMBERS = [name for column in PER_JOB.values() for name in (column, f"{column}_against")]
_SCHEMA = {"job": pl.String, "policy": pl.String, "against": pl.String, "seed": pl.Int64} | dict.fromkeys(
    [*_NUMBERS, "difference"], pl.Float64
)


@dataclass(frozen=True)
class JobsOfRun:
    """The jobs of one run: which policy, which seed, what happened."""

    policy: str
    seed: int
    jobs: Callable[[], pl.DataFrame]
    """Reads them, because most comparisons need the metrics of runs alone."""


def paired_jobs(runs: Sequence[JobsOfRun], against: str) -> pl.DataFrame:
    """A row per tracked job, seed and policy other than `against` that ended under both, with its times under each."""
    base = {run.seed: _ended(run.jobs()) for run in runs if run.policy == against}
    found = []
    for run in runs:
        if run.policy == against or run.seed not in base:
            continue
        both = _ended(run.jobs()).join(base[run.seed], on="job", suffix="_against", maintain_order="left")
        labels = {"policy": pl.lit(run.policy), "against": pl.lit(against), "seed": pl.lit(run.seed, dtype=pl.Int64)}
        found.append(both.select("job", *(value.alias(name) for name, value in labels.items()), *_NUMBERS))
    return pl.concat(found).with_columns(difference=pl.col("jct") - pl.col("jct_against")) if found else pl.DataFrame(schema=_SCHEMA)


def spread_of_stretches(pairs: pl.DataFrame, policy: str, metric: str) -> float:
    """How much a change might vary from run to run, estimated from the stretches of one run: consecutive jobs share their queue, so that
    stretches, not jobs, are what varies; the jackknife's error over them. NaN where there are too few jobs."""
    own, name = pairs.filter((pl.col("policy") == policy) & (pl.col("seed") == pl.col("seed").min())), PER_JOB[metric]
    columns = np.stack([own[f"{name}_against"].to_numpy(), own[name].to_numpy()])
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    if columns.shape[1] < 2 * STRETCHES:
        return math.nan
    sums = np.stack([part.sum(axis=1) for part in np.array_split(columns, STRETCHES, axis=1)], axis=1)
    return ratio_error(sums[0], sums[1])


def seed_columns(values: pl.DataFrame, metric: str, policy: str, against: str) -> Floats:
    """The metric under the other policy and under this one for every seed that both have, shape (2, seeds)."""
    known = values.filter(pl.col(metric).is_finite())
    left = known.filter(pl.col("policy") == against).select("seed", old=metric)
    both = known.filter(pl.col("policy") == policy).select("seed", new=metric).join(left, on="seed").sort("seed")
    return np.stack([both["old"].to_numpy(), both["new"].to_numpy()])


def _ended(jobs: pl.DataFrame) -> pl.DataFrame:
    counted = completed(jobs.filter("tracked") if "tracked" in jobs.columns else jobs)
    return counted.select("job", "jct", "queueing", "responsiveness", slowdown=bounded_slowdown(counted))


# Comparisons as files: differences and pairs as Parquet, verdicts as text.


def store_comparisons(found: Sequence[Comparison], folder: Path) -> None:
    """Write them beside the results of their sweep."""
    write_frame(folder / "differences.parquet", differences_of(found))
    write_frame(
        folder / "pairs.parquet", pl.concat([comparison.pairs.with_columns(**_place(comparison)) for comparison in found], how="diagonal")
    )
    write_text(folder / "verdict.txt", "\n".join(sentences_of(found)) + "\n")


def differences_of(found: Sequence[Comparison]) -> pl.DataFrame:
    """All differences in one table."""
    return pl.concat([comparison.frame for comparison in found], how="diagonal")


def sentences_of(found: Sequence[Comparison]) -> list[str]:
    """All verdicts, each with its place where there are several."""
    sentences = []
    for comparison in found:
        place = ", ".join(f"{name} {value}" for name, value in comparison.place.items())
        sentences += [f"At {place}: {sentence}" if place else sentence for sentence in comparison.verdicts]
    return sentences


def _place(comparison: Comparison) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in comparison.place.items()}
