"""How far predicted completion times are from measured ones: by mean, 95th percentile and makespan, with the spread of the prediction.

`clock_error` gives the orders of a live run again, so that only times differ. Every measure is that of all jobs together; how many jobs end
within their own interval tells whether the spread is right.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.inputs import Submit
from gantline.lab.questions.forecast import DRAWS, NINE_TENTHS
from gantline.models.profiles.bundle import Bundle
from gantline.models.profiles.profiled_model import ProfiledModel
from gantline.policies.recorded import GivenOrder, GivenOrders
from gantline.simulator.simulate import simulate

Measure = Callable[[Sequence[float], Sequence[float]], float]
#: of arrivals and times from submission to end
MEASURES: dict[str, Measure] = {
    "mean": lambda arrivals, jcts: statistics.fmean(jcts),
    "p95": lambda arrivals, jcts: float(np.quantile(jcts, 0.95)),
    "makespan": lambda arrivals, jcts: max(a + j for a, j in zip(arrivals, jcts)) - min(arrivals),
}


@dataclass(frozen=True)
class Predicted:
    """One measure in seconds: measured, and predicted with the middle nine tenths of the draws."""

    measure: str
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Relative; above zero: predicted too long."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True)
class Validity:
    """Every measure of one run, and which part of the jobs ended within their interval."""

    jobs: int
    draws: int
    measures: tuple[Predicted, ...]
    inside: float
    left_out: tuple[str, ...] = ()  # jobs of which a prediction knows too little

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {**asdict(self), "measures": [{**asdict(one), "error": one.error} for one in self.measures]}

    def lines(self) -> list[str]:
        """The same as sentences."""
        found = [f"{self.jobs} jobs, {self.draws} draws" if self.draws > 1 else f"{self.jobs} jobs"]
        for one in self.measures:
            span = f" ({one.low:.2f} to {one.high:.2f})" if self.draws > 1 else ""
            found.append(f"{one.measure}: measured {one.measured:.2f} s, replayed {one.predicted:.2f} s{span}, error {one.error:+.1%}")
        if self.draws > 1:
            found.append(f"{self.inside:.0%} of the jobs end within their 90 % interval")
        if self.left_out:
            more = f" and {len(self.left_out) - 5} more" if len(self.left_out) > 5 else ""
            found.append(f"note: left out, because they did not succeed or have no estimate: {', '.join(self.left_out[:5])}{more}")
        return found


def compare(arrivals: Sequence[float], measured: Sequence[float], drawn: Sequence[Sequence[float]]) -> Validity:
    """Measured times from submission to end beside those of each draw, in the same order of jobs."""
    found = []
    for name, of in MEASURES.items():
        futures = [of(arrivals, jcts) for jcts in drawn]
        low, high = np.quantile(futures, NINE_TENTHS)
        found.append(Predicted(name, of(arrivals, measured), statistics.fmean(futures), float(low), float(high)))
    low, high = np.quantile(np.array(drawn), NINE_TENTHS, axis=0)
    inside = float(np.mean((low <= np.array(measured)) & (np.array(measured) <= high)))
    return Validity(len(measured), len(drawn), tuple(found), inside)


def clock_error(
    jobs: Iterable[Submit],
    orders: Iterable[GivenOrder],
    ends: Mapping[str, float],
    cluster: Cluster,
    bundle: Bundle,
    draws: int | None = None,
) -> Validity:
    """The orders of a live run given again: what then differs are times. `ends` are those of jobs that succeeded.

    There are as many draws as asked for; else 200 where the profiles have a spread, and one run with the means where they have none.
    """
    asked = list(jobs)
    known = [job for job in asked if job.names[0] in ends and job.job.get("estimate")]
    left_out = tuple(job.names[0] for job in asked if job not in known)
    if not known:
        raise RefusedError("no job with an estimate has succeeded", where="--times", fix="ask again when some have ended")
    model, names = ProfiledModel(bundle), [job.names[0] for job in known]
    has_spread = model.drawn(0) is not None
    again = GivenOrders.of(order for order in orders if order.job in set(names))
    rows = [_row(job) for job in known]
    least = least_times(again, rows, cluster, bundle)
    numbers: list[int | None] = [*range(DRAWS if draws is None else draws)] if has_spread else [None]
    rolled = []
    for number in numbers:
        how = model if number is None else model.drawn(number)
        run = simulate(rows, cluster, again, performance=how, executor="measured", min_run=0.0, grace=0.0, turn=0.0)
        jct = dict(run.jobs.select("job", "jct").rows())
        rolled.append([max(jct[name], least.get(name, 0.0)) for name in names])
    arrivals = [job.time for job in known]
    real = [ends[name] - at for name, at in zip(names, arrivals)]
    return replace(compare(arrivals, real, rolled), left_out=left_out)


def least_times(again: GivenOrders, rows: Iterable[Mapping[str, object]], cluster: Cluster, bundle: Bundle) -> dict[str, float]:
    """Seconds from the arrival to the end that a job of several turns takes at least, by name: its last turn was given, and it resumed.

    So a near miss counts on both sides: a job that was recorded to end before its stop runs on until its end.
    """
    found, last = {}, again.last_turns
    for row in rows:
        name = str(row["job"])
        if name in last:
            type = cluster.nodes[int(cluster.device_node[last[name].devices[0]])].type
            profile = bundle.jobs.get(str(row.get("model", "")))
            speed = profile.alone.get((type, len(last[name].devices))) if profile is not None else None
            found[name] = last[name].start - float(str(row["arrival"])) + (speed.resume_and_end if speed is not None else 0.0)
    return found


def _row(submitted: Submit) -> dict[str, object]:
    """A job as a row of a trace: its estimate is its work."""
    job, work = submitted.job, float(submitted.job["estimate"])
    row = {key: job[key] for key in ("gpus", "min_gpus", "max_gpus", "model") if key in job}
    variants = [(variant["type"], variant["gpus"], work / variant.get("rate", 1.0)) for variant in job.get("options", ())]
    row |= {"options": "|".join(f"{kind}:{size}={seconds!r}" for kind, size, seconds in variants)} if variants else {}
    return {"job": submitted.names[0], "arrival": submitted.time, "duration": work, **row}
