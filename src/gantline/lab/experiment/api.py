"""`gantline.compare`, `gantline.advise`, `gantline.sweep` and `gantline.tune`: what the commands of the same names do, from Python.

Results stay in a folder of their own; without one they are kept as long as the value that is returned.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError, near
from gantline.core.policy import Policy
from gantline.lab.experiment.advice import Advice, advise_runs, check_jobs_fit, grid_of
from gantline.lab.experiment.compare import METRICS, Comparison, check_asked, differences_of, sentences_of, store_comparisons
from gantline.lab.experiment.compare import compare as compare_runs
from gantline.lab.experiment.grid import Case, Grid, PolicyChoice, policies_of
from gantline.lab.experiment.history import check_against, with_what_happened
from gantline.lab.experiment.messages import failures_of, notes_of, truth_known, usable, warnings_of
from gantline.lab.experiment.running.processes import choose_backend
from gantline.lab.experiment.saturation import RunAll
from gantline.lab.experiment.setting import MANY, Setting
from gantline.lab.experiment.sweep import Sweep, run_sweep, with_common_warmup
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.experiment.tuning.space import read_space
from gantline.lab.experiment.tuning.tune import HOLD_BACK, SEEDS, tune_settings
from gantline.lab.experiment.tuning.tuned import Tuned
from gantline.simulator.objective import parse_objectives
from gantline.simulator.simulate import with_options
from gantline.traces.files.policies import is_policy
from gantline.traces.trace import Trace

GivenTrace: TypeAlias = "Trace | str | Path | Mapping[str, Any] | TraceSource"
Own = Policy | type[Policy]
Policies = str | Own | Sequence[str | Own | PolicyChoice | tuple[str | type[Policy], Mapping[str, Any]]]
_SEEDS_OF_A_GENERATOR = 5


@dataclass(frozen=True, repr=False)
class Verdicts:
    """Policies compared with one of them: `frame` holds the differences, printing it gives the sentences."""

    comparisons: tuple[Comparison, ...]
    runs: Sweep
    left_out: str = ""
    """Why what a log says of real starts is not among the runs."""

    @property
    def frame(self) -> pl.DataFrame:
        """A row per policy and metric: both values, the relative change and its interval."""
        return differences_of(self.comparisons)

    @property
    def sentences(self) -> list[str]:
        """A sentence per policy: what it wins, what it loses, and over what the interval is; and one for each run that failed."""
        return [*sentences_of(self.comparisons), *failures_of(self.runs)]

    @property
    def remarks(self) -> list[str]:
        """What else a reader should know: runs in doubt, stops that cost nothing, seeds that change nothing."""
        return [*([self.left_out] if self.left_out else []), *truth_known(self.runs), *warnings_of(self.runs), *notes_of(self.runs)]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        text = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        more = "".join(f"<li><small>{escape(remark)}</small></li>" for remark in self.remarks)
        return f"<ul>{text}{more}</ul>{self.frame._repr_html_()}"


@partial(with_options, single=False)
def compare(
    trace: GivenTrace,
    cluster: Cluster | str | Path,
    policies: Policies,
    *,
    against: str = "",
    metrics: str | Sequence[str] = METRICS,
    seeds: int | Iterable[int] | None = None,
    confidence: float = 0.95,
    workers: int = 1,
    folder: str | Path | None = None,
    **options: Any,
) -> Verdicts:
    """Compare policies on the same jobs: paired differences, intervals, a verdict in words.

    >>> found = compare("day", "8x8", "fifo,srtf,las", seeds=5, round="1m")
    >>> print(found)
    >>> found.frame

    `trace`: as in `simulate`; a generator with settings is {"generate": "philly", "settings": {"jobs": 2000}},
    a foreign log {"file": "log.txt", "format": "sacct"}.
    `policies`: "fifo,las", or a list of names, of ("las", {"service": "gpu-time"}), of "FILE.py:CLASS", of policies of your own (objects or
    classes), which run in this process only, and anew every time.
    `against`: the policy to compare with; by default the first. `seeds`: how many, or which; of a file one, of a generator five.
    `workers`: processes side by side. `folder`: keep the runs here; what is there is not run again.
    """
    place = _Place.of(folder)
    base = _setting(trace, cluster, options, place)
    wanted = metrics.split(",") if isinstance(metrics, str) else metrics
    run = partial(place.run, workers=workers)
    verdicts = compared(base, choices_of(policies), _seeds(seeds, usual_seeds(base)), run, against, wanted, confidence)
    if folder is not None:
        store_comparisons(verdicts.comparisons, Path(folder))
    place.lend_to(verdicts.runs)
    return verdicts


def compared(
    base: Setting,
    policies: tuple[PolicyChoice, ...],
    seeds: tuple[int, ...],
    run: RunAll,
    against: str,
    metrics: Sequence[str],
    confidence: float,
) -> Verdicts:
    """Run the policies, and what a log says of real starts beside them, and compare them."""
    grid = Grid(base, policies, seeds=seeds)
    check_against(against, grid.policies)
    check_asked(metrics, confidence)
    runs, left_out = with_what_happened(usable(run(grid.cases())), base)
    return Verdicts(tuple(compare_runs(runs, against=against, metrics=metrics, confidence=confidence)), runs, left_out)


def usual_seeds(base: Setting) -> int:
    """How many seeds policies are compared with: of a file there is one run."""
    return _SEEDS_OF_A_GENERATOR if base.trace.generator else 1


@partial(with_options, single=False)
def advise(
    trace: GivenTrace,
    cluster: Cluster | str | Path,
    policies: Policies,
    *,
    against: str = "",
    grow: float = 0.1,
    also: Sequence[str] = (),
    seeds: int | Iterable[int] | None = None,
    workers: int = 1,
    folder: str | Path | None = None,
    **options: Any,
) -> Advice:
    """Say which policy serves these jobs best, and whether a larger cluster would help.

    >>> found = advise("jobs.csv", "16x8", "fifo,srtf,las", grow=0.1, also=["20x8"])
    >>> found.sentences, found.means

    `grow`: how much larger the other cluster is, 0 for none. `also`: other clusters. The rest: as in `compare`.
    """
    place = _Place.of(folder)
    base = _setting(trace, cluster, options, place)
    grid = grid_of(base, choices_of(policies), also, grow, _seeds(seeds, usual_seeds(base)))
    found = advised(base, grid, partial(place.run, workers=workers), against)
    place.lend_to(found.sweep)
    return found


def advised(base: Setting, grid: Grid, run: RunAll, against: str) -> Advice:
    """Run a grid of policies and clusters, and what a log says of real starts beside it, and judge the runs."""
    check_against(against, grid.policies)
    check_jobs_fit(cases := grid.cases())
    runs, left_out = with_what_happened(usable(run(cases)), base)
    return advise_runs(runs, base, against=against, left_out=left_out)


@partial(with_options, single=False)
def sweep(
    trace: GivenTrace,
    cluster: Cluster | str | Path,
    policies: Policies,
    *,
    loads: float | Sequence[float] = (),
    seeds: int | Iterable[int] = 1,
    vary: Mapping[str, Any] | None = None,
    workers: int = 1,
    folder: str | Path | None = None,
    keep_runs: bool = False,
    **options: Any,
) -> Sweep:
    """Run policies x loads x seeds x any parameter. The result shows a table of means; `results` is the table of every run.

    >>> found = sweep("steady", "16x8", "fifo,srtf", loads=[0.5, 0.7, 0.9], seeds=5, workers=4, folder="results")
    >>> found.means
    >>> found.plot("load")

    `trace`, `policies`, `workers`, `folder`: as in `compare`. `loads`: what a generator calls its load, or factors on the arrivals
    of a file. `vary`: other axes, {"round": ["1m", "5m"], "trace.jobs": [100, 200], "las.service": ["time", "gpu-time"]}.
    """
    place = _Place.of(folder)
    base = _setting(trace, cluster, options, place)
    at = (loads,) if isinstance(loads, (int, float)) else tuple(loads)
    grid = Grid(base, choices_of(policies), at, _seeds(seeds, 1), {name: _values(given) for name, given in (vary or {}).items()})
    grid.refuse_values_beside_axes()
    found = place.run(grid.cases(), workers=workers, keep_runs=keep_runs)
    place.lend_to(found)
    return found


@partial(with_options, single=False)
def tune(
    policy: str,
    traces: Any,
    cluster: Cluster | str | Path,
    space: Mapping[str, Any],
    *,
    objective: str | Sequence[str] = "mean-jct",
    trials: int = 100,
    seeds: int | Iterable[int] | None = None,
    hold_back: float = HOLD_BACK,
    tuning_seed: int = 0,
    confidence: float = 0.95,
    workers: int = 1,
    folder: str | Path | None = None,
    **options: Any,
) -> Tuned:
    """Search for the settings of a policy that make an objective small, and hold them against workloads that the search has not seen.

    >>> found = tune("tiresias", ["a.csv", "b.csv", "c.csv"], "8x8", {"limits.0": (60, 36000, "log")}, objective="mean-jct", trials=50)
    >>> print(found)
    >>> found.frame, found.policy, found.plot("search")

    `policy`: a name, "FILE.py:CLASS" or a file of settings. `traces`: one or a list, each as in `simulate`; of a generator `seeds` are
    drawn, by default eight. `space`: (low, high), (low, high, "log"), a list of choices, or one value that stays, by parameter; or texts
    as on the command line. `objective`: see `gantline.simulator.objective`; several make a front. `hold_back`: the share of the workloads
    that the search does not see. `folder`: keep everything here; the same call goes on from there.
    """
    place = _Place.of(folder)
    listed = traces if isinstance(traces, (list, tuple)) else [traces]
    bases = [_setting(one, cluster, options, place.numbered(number)) for number, one in enumerate(listed)]
    words = objective if isinstance(objective, str) else ",".join(objective)
    wanted = _seeds(seeds, SEEDS if any(base.trace.generator for base in bases) else 1)
    found = tune_settings(
        read_space(policy, space, "space"),
        parse_objectives(words),
        bases,
        place.folder,
        trials=trials,
        seeds=wanted,
        hold_back=hold_back,
        seed=tuning_seed,
        confidence=confidence,
        workers=workers,
    )
    place.lend_to(found)
    return found


@dataclass(frozen=True)
class _Place:
    """Where runs are kept: a folder that was named, or one that goes away with the result."""

    folder: Path
    passing: bool
    number: int = 0

    def numbered(self, number: int) -> _Place:
        """The same place, for the trace of that number."""
        return replace(self, number=number)

    @staticmethod
    def of(folder: str | Path | None) -> _Place:
        return _Place(Path(tempfile.mkdtemp(prefix="gantline-")) / "sweep", True) if folder is None else _Place(Path(folder), False)

    def run(self, cases: Sequence[Case], *, workers: int, keep_runs: bool = False) -> Sweep:
        if workers > 1 and (own := [case.policy for case in cases if case.setting.handed is not None]):
            fix = "write the class into a file and give 'FILE.py:CLASS', or leave workers at 1"
            raise UsageError(f"'{own[0]}' is an object of this process, which other processes do not have", where="workers", fix=fix)
        run = partial(run_sweep, folder=self.folder, backend=choose_backend(workers), keep_runs=keep_runs)
        return usable(with_common_warmup(cases, run))

    def lend_to(self, found: object) -> None:
        """Let a passing folder go away with what was found in it."""
        if self.passing:
            weakref.finalize(found, shutil.rmtree, self.folder.parent, True)


def _setting(trace: Any, cluster: Any, options: Mapping[str, Any], place: _Place) -> Setting:
    for name in options:
        if name not in MANY:
            raise UsageError(
                f"no option '{name}'", fix=near(name, [*MANY, "against", "metrics", "seeds", "loads", "vary", "workers", "folder"])
            )
    if isinstance(cluster, Cluster) and not cluster.spec:
        raise UsageError("a comparison names its cluster", where="cluster", fix="write 8x4, or name a YAML file")
    return Setting(_source(trace, place), cluster.spec if isinstance(cluster, Cluster) else str(cluster), "fifo", **options)


def _source(trace: Any, place: _Place) -> TraceSource:
    if isinstance(trace, TraceSource):
        return trace
    if isinstance(trace, (str, Path, Mapping)):
        return TraceSource.read(str(trace) if isinstance(trace, Path) else trace)
    return TraceSource.saved_near(place.folder, Trace.of(trace), place.number)


def choices_of(given: Policies) -> tuple[PolicyChoice, ...]:
    """The policies that are given by name, by value or by class."""
    found: list[PolicyChoice] = []
    for one in [given] if isinstance(given, (str, type, Policy)) else given:
        if isinstance(one, PolicyChoice):
            found.append(one)
        elif isinstance(one, str):
            found += policies_of([one])
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str):
            found.append(PolicyChoice(one[0], dict(one[1])))
        elif is_policy(one):
            found.append(PolicyChoice.of(one))
        elif isinstance(one, tuple) and len(one) == 2 and is_policy(one[0]):
            found.append(PolicyChoice.of(one[0], one[1]))
        else:
            fix = "write 'las', ('las', {...}), 'FILE.py:CLASS', or give an object of a policy class"
            raise UsageError(f"{one!r:.60} is no policy", where="policies", fix=fix)
    return tuple(found)


def _values(given: Any) -> Sequence[Any]:
    """The values of an axis: a list, one alone, or words with commas (or semicolons) between them."""
    if isinstance(given, str):
        return [word.strip() for word in given.split(";" if ";" in given else ",")]
    return [given] if isinstance(given, (int, float)) else list(given)


def _seeds(given: int | Iterable[int] | None, default: int) -> tuple[int, ...]:
    if given is None:
        return tuple(range(default))
    if isinstance(given, str):
        raise UsageError(f"'{given}' is neither a number nor a list", where="seeds", fix="write 5 or [1, 2, 3]")
    return tuple(range(given)) if isinstance(given, int) else tuple(given)
