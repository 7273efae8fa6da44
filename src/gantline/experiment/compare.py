"""Compare policies on the same jobs: paired differences, intervals, a verdict in words.

With several seeds each seed is a pair, and the interval says how far the mean difference could be off because other
seeds might have been drawn: other jobs, or, where the trace is fixed, other draws of the run. Where no seed changes anything there is
one run. With one run each job is a pair; that interval is about the mix of jobs only. Runs that are in doubt (`report.doubts`) never win.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.experiment.bootstrap import FEWEST, Interval, bootstrap, relative_change
from gantline.experiment.pairing import PER_JOB, JobsOfRun, job_columns, paired_jobs, seed_columns
from gantline.experiment.results import doubts_over, same_runs
from gantline.experiment.sweep import Sweep
from gantline.experiment.verdict import Difference, verdict
from gantline.report.metrics import BY_KEY

METRICS = ("jct_mean", "jct_p95", "makespan")


@dataclass(frozen=True)
class Comparison:
    """Policies compared with one of them at one place of the other axes."""

    against: str
    place: dict[str, object]
    values: pl.DataFrame
    """A row per policy and seed with every metric."""
    pairs: pl.DataFrame
    """A row per job, seed and policy with its times under both."""
    differences: tuple[Difference, ...]

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
                "doubts": item.doubts,
            }
            for item in self.differences
        ]
        return pl.DataFrame(rows)

    @property
    def verdicts(self) -> list[str]:
        """A sentence per policy."""
        names = list(dict.fromkeys(item.policy for item in self.differences))
        return [verdict([item for item in self.differences if item.policy == name]) for name in names]


def compare(
    sweep: Sweep, *, against: str = "", metrics: Sequence[str] = METRICS, confidence: float = 0.95, seed: int = 0
) -> list[Comparison]:
    """A comparison for each place of the axes other than policy and seed; by default against the first policy."""
    for name in metrics:
        if name not in BY_KEY or not BY_KEY[name].better:
            known = [key for key, metric in BY_KEY.items() if metric.better]
            raise NotFoundError(f"no metric '{name}' to compare by", where="metrics", fix=near(name, known))
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
        place = {name: group[name][0] for name in outer}
        found.append(_compare_group(sweep, group, base, place, metrics, confidence, seed))
    return found


def _compare_group(
    sweep: Sweep, rows: pl.DataFrame, base: str, place: dict[str, object], metrics: Sequence[str], confidence: float, seed: int
) -> Comparison:
    done = rows.filter(pl.col("state") == "done")
    runs = [JobsOfRun(row["policy"], row["seed"], sweep.records[row["index"]].jobs()) for row in done.iter_rows(named=True)]
    pairs = paired_jobs(runs, base)
    differences = []
    for policy in rows["policy"].unique(maintain_order=True).to_list():
        if policy != base:
            own = pairs.filter(pl.col("policy") == policy)
            differences += [_difference(done, own, metric, policy, base, confidence, seed) for metric in metrics]
    return Comparison(base, place, done.drop("index"), pairs, tuple(differences))


def _difference(rows: pl.DataFrame, pairs: pl.DataFrame, metric: str, policy: str, base: str, confidence: float, seed: int) -> Difference:
    both = rows.filter(pl.col("policy").is_in([policy, base]))
    columns, copies = seed_columns(both, metric, policy, base), 1
    if same_runs(both):
        both = both.filter(pl.col("seed") == pl.col("seed").min())
        columns, copies = columns[:, :1], columns.shape[1]
        pairs = pairs.filter(pl.col("seed") == pairs["seed"].min())
    seeds = columns.shape[1]
    value, old = (float(columns[k].mean()) if seeds else math.nan for k in (1, 0))
    made = Difference(policy, base, metric, value, old, Interval(math.nan, math.nan, math.nan, confidence, seeds), "", copies=copies)
    made = replace(made, doubts="; ".join(f"{name}: {told}" for name in (base, policy) if (told := doubts_over(both, name))))
    made = replace(made, uneven=_uneven(both, policy, base))
    if seeds > 1:
        single = relative_change(columns.T[:, :, None])
        change = bootstrap(columns, relative_change, confidence=confidence, seed=seed)
        over = "seeds" if both["trace_hash"].n_unique() > 1 else "draws"
        return replace(made, change=change, over=over, lowest=float(single.min()), highest=float(single.max()))
    if seeds == 1 and metric in PER_JOB and pairs.height >= FEWEST:
        change = bootstrap(_finite(job_columns(pairs, metric)), relative_change, confidence=confidence, seed=seed)
        return replace(made, change=change, over="jobs")
    return replace(made, change=replace(made.change, value=float(relative_change(columns[None])[0]) if seeds else math.nan))


def _uneven(rows: pl.DataFrame, policy: str, base: str) -> str:
    """That one of the two completed more jobs; empty where both completed as many."""
    ended = {name: int(rows.filter(pl.col("policy") == name)["completed"].sum()) for name in (policy, base)}
    if ended[policy] == ended[base]:
        return ""
    counts = f"{policy} completed {ended[policy]:,} jobs, {base} {ended[base]:,}"
    return f" But {counts}: whoever was turned away or failed counts in no mean."


def _finite(columns: Floats) -> Floats:
    return columns[:, np.isfinite(columns).all(axis=0)]
