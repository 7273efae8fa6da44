"""A history of jobs under another policy or on another cluster, and how far the same method is from what really happened.

The history is simulated under both policies, and again on histories like it: blocks of consecutive jobs drawn with replacement, each job
with the gap before it (the moving-block bootstrap of Kuensch, Annals of Statistics 1989), so that bursts stay bursts. Where the history
says when jobs really ended, the simulation of the present policy is compared with it: an answer is no more accurate than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.fields import human_seconds
from gantline.core.policy import Policy
from gantline.core.rng import stream
from gantline.lab.questions.what_if import Contrast
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

REPLICAS = 20
LEVEL = 0.9
WORDS = {"jct_mean": "mean JCT", "queueing_mean": "mean time until the first start", "makespan": "makespan"}


@dataclass(frozen=True)
class MethodError:
    """What the simulation of the present policy says, and what really happened."""

    metric: str
    simulated: float
    measured: float

    @property
    def relative(self) -> float:
        return self.simulated / self.measured - 1.0 if self.measured > 0 else math.nan

    def __str__(self) -> str:
        text = f"{WORDS[self.metric]} really was {human_seconds(self.measured)}, simulated {human_seconds(self.simulated)}"
        return f"{text} ({100 * self.relative:+.1f} %)"


@dataclass(frozen=True)
class PastAnswer:
    """Both policies on the history; intervals over histories like it."""

    present: str
    other: str
    jobs: int
    replicas: int
    differences: tuple[Contrast, ...]
    errors: tuple[MethodError, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The answer as sentences."""
        lines = [f"{self.jobs} jobs of the past, {self.replicas} resampled histories: {self.other} in place of {self.present}"]
        for one in self.differences:
            change = f"{100 * one.change:+.0f} %, {100 * LEVEL:.0f} % interval {100 * one.low:+.0f} to {100 * one.high:+.0f} %"
            lines.append(f"{WORDS[one.metric]}: {human_seconds(one.present)} then {human_seconds(one.other)} ({change})")
        if self.differences:
            lines.append(
                "the intervals are about another history like this one, made of stretches of it; they know nothing of what it does not hold"
            )
        lines += [f"error of the method: {one}" for one in self.errors]
        if not self.errors:
            lines.append("note: the history does not say when jobs really started and ended, so the error of the method is not known")
        return lines


def past_what_if(
    trace: Trace,
    cluster: Cluster,
    present: Policy | str,
    other: Policy | str | None = None,
    *,
    add: str = "",
    lose: Sequence[str] = (),
    replicas: int = REPLICAS,
    seed: int = 0,
    **options: object,
) -> PastAnswer:
    """What the history would have been; `options` are those of `simulate`."""
    if other is None and not add and not lose:
        raise UsageError("nothing is different", where="what-if", fix="name another policy, nodes to add or nodes to lose")
    if len(trace.frame) == 0:
        raise UsageError("the history has no jobs", where="what-if", fix="ask again when some have ended")
    then_policy, then_cluster = present if other is None else other, changed(cluster, add, lose)
    here, there = _numbers(trace, cluster, present, options), _numbers(trace, then_cluster, then_policy, options)
    draws: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(replicas):
        like = resampled(trace, stream(seed, number, "history"))
        draws.append((_numbers(like, cluster, present, options), _numbers(like, then_cluster, then_policy, options)))
    differences = []
    for metric in WORDS:
        changes = np.array([two[metric] / one[metric] - 1.0 for one, two in draws if one[metric] > 0])
        change = there[metric] / here[metric] - 1.0 if here[metric] > 0 else math.nan
        differences.append(Contrast(metric, here[metric], there[metric], change, *like_it(change, changes)))
    called = _called(then_policy) + "".join([f" with {add} more" if add else "", f" without {', '.join(lose)}" if lose else ""])
    errors = tuple(MethodError(metric, here[metric], value) for metric, value in measured(trace).items())
    return PastAnswer(_called(present), called, len(trace.frame), replicas, tuple(differences), errors)


def like_it(change: float, changes: Floats) -> tuple[float, float]:
    """Between which changes another history like this one is expected: the hull of the resampled changes' percentiles and of Student's
    interval around the change itself. That is wider by the square root of two, because this history and the other are both drawn."""
    if len(changes) < 2 or not math.isfinite(change):
        return math.nan, math.nan
    share = (1.0 - LEVEL) / 2.0
    reach = math.sqrt(2.0) * float(stdtrit(len(changes) - 1, 1.0 - share)) * float(changes.std(ddof=1))
    low, high = np.quantile(changes, [share, 1.0 - share])
    return max(-1.0, min(float(low), change - reach)), max(float(high), change + reach)


def measured(trace: Trace) -> dict[str, float]:
    """What really happened, if the history has every start; a job without a recorded end ran without interruption."""
    rows = trace.frame
    if "started" not in rows.columns or rows["started"].null_count() or rows.get_column("ended", default=rows["started"]).null_count():
        return {}
    arrival, started = rows["arrival"].to_numpy(), rows["started"].to_numpy()
    ended = rows["ended"].to_numpy() if "ended" in rows.columns else started + rows["duration"].to_numpy()
    return {
        "jct_mean": float(np.mean(ended - arrival)),
        "queueing_mean": float(np.mean(started - arrival)),
        "makespan": float(ended.max() - arrival.min()),
    }


def resampled(trace: Trace, random: np.random.Generator) -> Trace:
    """A history like it: as many jobs, in blocks that keep their order and gaps."""
    frame = trace.frame
    count = len(frame)
    arrival = frame["arrival"].to_numpy()
    gaps: Floats = np.diff(arrival, prepend=arrival[0])
    size = max(1, min(count, round(math.sqrt(count))))
    blocks = math.ceil(count / size)
    firsts: Ints = random.integers(0, count - size + 1, blocks)
    picks = (firsts[:, None] + np.arange(size)).ravel()[:count]
    again = np.cumsum(gaps[picks])
    moved = again - arrival[picks]
    later = [name for name in ("deadline",) if name in frame.columns]
    shifted = frame[picks.tolist()].with_columns(
        pl.Series("job", [f"{name}.{place}" for place, name in enumerate(frame["job"][picks.tolist()].to_list())]),
        pl.Series("arrival", again),
        *((pl.col(name) + pl.Series(moved)).alias(name) for name in later),
    )
    return Trace(shifted.drop([name for name in ("started", "ended") if name in frame.columns]), f"{trace.source}, resampled")


def changed(cluster: Cluster, add: str, lose: Sequence[str]) -> Cluster:
    """The cluster with nodes added at its end, and without some."""
    names = [node.name for node in cluster.nodes]
    for name in lose:
        if name not in names:
            raise NotFoundError(f"no node '{name}'", where="--lose", fix=near(name, names))
    added = [replace(node, name=f"added{number}") for number, node in enumerate(parse_cluster(add).nodes)] if add else []
    nodes = tuple(node for node in cluster.nodes if node.name not in lose) + tuple(added)
    if not nodes:
        raise UsageError("no node is left", where="--lose", fix="keep at least one")
    return replace(cluster, nodes=nodes, spec="") if add or lose else cluster


def _numbers(trace: Trace, cluster: Cluster, policy: Policy | str, options: dict[str, Any]) -> dict[str, float]:
    jobs = simulate(trace, cluster, policy, **options).jobs.filter(pl.col("finish").is_not_nan() & pl.col("finish").is_not_null())
    if jobs.is_empty():
        return dict.fromkeys(WORDS, math.nan)
    start = jobs["arrival"].min()
    return {
        "jct_mean": float(jobs["jct"].mean()),  # type: ignore[arg-type]
        "queueing_mean": float((jobs["first_start"] - jobs["arrival"]).mean()),  # type: ignore[arg-type]
        "makespan": float(jobs["finish"].max() - start),  # type: ignore[operator,arg-type]
    }


def _called(policy: Policy | str) -> str:
    return policy if isinstance(policy, str) else policy.name or type(policy).__name__
