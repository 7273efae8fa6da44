"""What the simulator says of the same jobs, beside what was measured: with a spread, and with two kinds of error.

*Of the clock*: the orders of the live run are given again, so that only times differ. *Of the whole*: the policy decides by itself.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import history
import workload
from run import setup_of

from gantline import simulate
from gantline.core.arrays import Floats
from gantline.lab.questions.validity import MEASURES, least_times
from gantline.live.runners.local.devices import declared
from gantline.models.model import Gangs
from gantline.models.profiles.bundle import Bundle
from gantline.models.profiles.profiled_model import ProfiledModel
from gantline.policies.recorded import GivenOrder, GivenOrders
from gantline.traces.files.policies import load_policy
from gantline.traces.files.speeds import read_bundle


@dataclass(frozen=True)
class AsSeen(ProfiledModel):
    """Gangs do as runs have shown, in a draw or on average; the scheduler goes on being told what the profiles say, as it is in a live run.

    So it counts what a job has received, and has left, with the starts and speeds of the profiles.
    """

    does_otherwise: ClassVar[bool] = True

    told: Bundle = field(default_factory=Bundle)
    _starts: dict[str, float] = field(default_factory=dict)  # what the latest start of each job takes

    @cached_property
    def _expected(self) -> ProfiledModel:
        return ProfiledModel(self.told)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        return self._expected.rates(gangs)

    def cost(self, gangs: Gangs) -> Floats:
        self._starts.update(zip(gangs.jobs, super().cost(gangs).tolist()))
        return self._expected.cost(gangs)

    def takes(self, job: str, expected: float) -> float:
        return self._starts[job]

    def goes(self, job: str, model: str, type: str, gpus: int, expected: float) -> float:
        speed, told = self.bundle[model].alone[type, gpus], self.told[model].alone[type, gpus]
        return expected * speed.line.rate / told.line.rate * self._factor("speed", model, speed, job)


class Prediction:
    """One policy of a folder, predicted as often as wanted."""

    def __init__(
        self, told: Bundle, known: Bundle, as_in: Sequence[Bundle], found: dict[str, Any], name: str, works: list[workload.Work]
    ) -> None:
        """`told` are the profiles; `known` is what the runs of others make of them, all together and as in each of them."""
        self.told, self.known, self.as_in, self.works = told, known, as_in, works
        self.setup = setup_of(found["terms"], name, "")
        self.cluster = declared(found["devices"]).cluster

    def under(self, run: dict[str, Any]) -> list[float]:
        """Completion times in the order of the jobs, under the orders of a live run, all of which are carried out."""
        arrivals, orders = [row["arrival"] for row in run["jobs"]], given(run["orders"])
        least = least_times(orders, self._rows(arrivals), self.cluster, self.known)
        return [max(jct, least.get(str(place), 0.0)) for place, jct in enumerate(self.jcts(arrivals, orders))]

    def _rows(self, arrivals: list[float]) -> list[dict[str, object]]:
        return [work.row(str(place), at) for place, (work, at) in enumerate(zip(self.works, arrivals))]

    def jcts(self, arrivals: list[float], orders: GivenOrders | None = None, draw: int | None = None) -> list[float]:
        """Completion times in the order of the jobs; under these orders, or as the policy decides."""
        rows = self._rows(arrivals)
        setup = self.setup
        policy = load_policy(setup.policy, setup.settings) if orders is None else orders
        options: dict[str, Any] = {"min_run": 0.0, "grace": 0.0, "turn": 0.0}
        if orders is None:
            options = {name: getattr(setup, name) for name in options} | {"round": setup.round or None}
        model = AsSeen(self.known if draw is None else self.as_in[draw % len(self.as_in)], draw=draw, told=self.told)
        run = simulate(rows, self.cluster, policy, performance=model, executor="measured", **options)
        done = {str(row["job"]): row["jct"] for row in run.jobs.iter_rows(named=True)}
        return [done[str(place)] for place in range(len(rows))]


def given(orders: list[dict[str, Any]]) -> GivenOrders:
    """The orders of a live run as a policy."""
    return GivenOrders.of(
        GivenOrder(one["time"], str(one["job"]), tuple(one["devices"]) if one["order"] == "start" else ()) for one in orders
    )


def interval(values: list[float]) -> tuple[float, float]:
    """The middle nine tenths."""
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return cuts[0], cuts[-1]


def compare(out: Path, draws: int, only: Sequence[str] = (), history_of: str = "others") -> dict[str, Any]:
    """Print the table and write `predicted.json`: both errors by policy and measure, the spread, and how often the truth lay inside.

    Each policy, or only those, is predicted from the profiles and, unless `history_of` is "none", from the runs of the others.
    """
    bundle, found = read_bundle(out / "profiles.json"), json.loads((out / "live.json").read_text())
    types = [node.type for node in declared(found["devices"]).cluster.nodes for _ in range(node.gpus)]
    works, result = workload.make(bundle, found["terms"], len(types)), dict[str, Any]()
    for name, runs in found["policies"].items():
        if runs and name in (only or found["policies"]):
            others = [run for other, several in found["policies"].items() if other != name for run in several]
            known, as_in = bundle, [bundle]
            if others and history_of == "others":
                known = history.refined(bundle, others, works, types)
                as_in = history.as_in_each(known, others, types)
            own = history.refined(bundle, runs, works, types)
            result[name] = _policy(
                Prediction(bundle, known, as_in, found, name, works), Prediction(bundle, own, [own], found, name, works), runs, draws
            )
            seen = history.Seen()
            for run in runs:
                seen += history.seen_in(run, bundle, types)
            print("\n".join([*_lines(name, result[name]), *seen.lines(name)]), flush=True)
    (out / "predicted.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print("\n".join(verdicts(result, found["terms"]["bars"])))
    return result


def _policy(prediction: Prediction, own: Prediction, runs: list[dict[str, Any]], draws: int) -> dict[str, Any]:
    """`own` knows how long starts and steps took in these very runs: what is left of the clock's error then is how the simulator counts."""
    real = [[row["jct"] for row in run["jobs"]] for run in runs]
    arrivals = [[row["arrival"] for row in run["jobs"]] for run in runs]
    clock, counted = [prediction.under(run) for run in runs], [own.under(run) for run in runs]
    drawn = [prediction.jcts(arrivals[0], draw=draw) for draw in range(draws)]
    found: dict[str, Any] = {"runs": len(runs), "draws": draws}
    for measure, of in MEASURES.items():
        each = [of(at, jcts) for at, jcts in zip(arrivals, real)]
        again, counts = ([of(at, jcts) for at, jcts in zip(arrivals, replayed)] for replayed in (clock, counted))
        futures = [of(arrivals[0], jcts) for jcts in drawn]
        low, high = interval(futures)
        mean = statistics.fmean(each)
        found[measure] = {
            "measured": each,
            "predicted": statistics.fmean(futures),
            "low": low,
            "high": high,
            "whole": statistics.fmean(futures) / mean - 1.0,
            "clock": statistics.fmean(again) / mean - 1.0,
            "own": statistics.fmean(counts) / mean - 1.0,
            "inside": sum(low <= one <= high for one in each) / len(each),
        }
    spans = [interval([jcts[place] for jcts in drawn]) for place in range(len(real[0]))]
    inside = [low <= jcts[place] <= high for jcts in real for place, (low, high) in enumerate(spans)]
    return {**found, "jobs_inside": sum(inside) / len(inside)}


def _lines(name: str, one: dict[str, Any]) -> list[str]:
    found = []
    for measure in MEASURES:
        at = one[measure]
        runs = ", ".join(f"{value:.2f}" for value in at["measured"])
        said = f"predicted {at['predicted']:7.2f} ({at['low']:.2f} to {at['high']:.2f})"
        errors = f"whole {at['whole']:+6.1%}  clock {at['clock']:+6.1%}, with its own times {at['own']:+6.1%}"
        found.append(f"{name:10} {measure:9} measured {runs:>8}  {said}  {errors}")
    return [*found, f"{name:10} jobs inside their 90 % interval: {one['jobs_inside']:.0%}"]


def verdicts(result: dict[str, Any], bars: dict[str, Any]) -> list[str]:
    """Each bar of the terms, and what came out."""
    errors = {name: abs(one["mean"]["whole"]) for name, one in result.items()}
    clocks = {name: abs(one["mean"]["clock"]) for name, one in result.items()}
    worst, slowest = max(errors, key=errors.__getitem__), max(clocks, key=clocks.__getitem__)
    inside = statistics.fmean(one["jobs_inside"] for one in result.values())
    return [
        f"mean JCT, each policy: {errors[worst]:.1%} at worst ({worst}); bar {bars['mean_each']:.0%}",
        f"mean JCT, on average: {statistics.fmean(errors.values()):.1%}; bar {bars['mean_average']:.0%}",
        f"clock: {clocks[slowest]:.1%} at worst ({slowest}); bar {bars['clock']:.0%}",
        f"jobs inside their interval: {inside:.0%}; bar {bars['inside'][0]:.0%} to {bars['inside'][1]:.0%}",
        f"policies out of the predicted order: {', '.join(out_of_order(result)) or 'none'}",
    ]


def out_of_order(result: dict[str, Any]) -> list[str]:
    """Pairs of policies whose intervals do not overlap and whose measured means are the other way round."""
    means = {name: statistics.fmean(one["mean"]["measured"]) for name, one in result.items()}
    return [
        f"{one} and {other}"
        for one in result
        for other in result
        if result[one]["mean"]["high"] < result[other]["mean"]["low"] and means[one] >= means[other]
    ]
