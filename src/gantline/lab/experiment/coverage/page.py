"""The measurements as a page of the documentation."""

# ruff: noqa: E501 (sentences of the page)

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gantline.lab.experiment.coverage.measures import (
    EQUALS,
    METRICS,
    RIVALS,
    WORKLOADS,
    Population,
    coverage_over,
    draw_population,
    empty_start,
    guarded,
    history_coverage,
    lost_verdicts,
    power_over,
    wrong_tables,
)

COUNTS = (3, 5, 10, 20)
LEVELS = ((0.95, COUNTS), (0.99, (10, 20)))
PAIRS = (("fifo", "srtf"), ("las", "srtf"), ("fifo", "equal 0"))
STARTS = (("4x4", 16, 0.7), ("4x4", 16, 0.9), ("4x4", 16, 0.95), ("8x8", 64, 0.9), ("8x8", 64, 0.95))

_HEAD = """\
# Coverage: how often verdicts and intervals are right

{results}

Every number here is a share of simulated cases. `gantline experiment coverage` makes this page anew, always from the same seeds.

<!-- not run: it takes minutes and writes into the documentation -->
```console
$ gantline experiment coverage -o docs/coverage.md
```

Workload: 300 jobs on 16 GPUs (`4x4`), gangs of 1 to 8, log-normal durations (median 1 h, sigma 1.5: the longest of 300 jobs takes about as long as a
hundred of them); at a load of 0.9 that every seed is stretched to (a generator with `jobs` and `load`), or with loads as they are drawn around it. {seeds} seeds under each policy are the
population; tables of a few seeds are drawn from it without replacement, and its own mean change is the truth.
"""


@dataclass(frozen=True)
class Effort:
    """How much is run; the defaults are those of the page."""

    seeds: int = 400
    tables: int = 100
    runs: int = 24
    histories: int = 10


def coverage_page(effort: Effort, say: Callable[[str], None] = lambda _: None) -> str:
    """The whole page; `say` receives what is measured next."""
    populations: dict[str, Population] = {}
    for title, workload in WORKLOADS.items():
        say(f"simulating {effort.seeds} seeds, {title}")
        populations[title] = draw_population(workload, (*EQUALS, *RIVALS), range(effort.seeds))
    found = []
    for section in (_wrong, _power, _intervals, _histories):
        say(f"measuring {section.__name__.strip('_')}")
        found.append(section(populations, effort))
    say("measuring the overload guard")
    found.append(_guard(effort))
    say("measuring the empty start")
    found.append(_start(effort))
    results = "\n".join(f"* {result}" for result, _ in found)
    return "\n".join([_HEAD.format(results=results, seeds=effort.seeds), *(text for _, text in found)])


def _wrong(populations: dict[str, Population], effort: Effort) -> tuple[str, str]:
    rows = [
        [title, *(_percent(wrong_tables(population, EQUALS, count, effort.tables)) for count in COUNTS)]
        for title, population in populations.items()
    ]
    result = f"A table of six equal policies has a wrong verdict in {_span(rows, 1, 2, 3, 4)} of cases."
    return result, _section(
        "Wrong verdicts",
        'Six equal policies (one random order under six salts): five comparisons of three metrics each. Every "beats" or "loses" is wrong. '
        f"Share of tables with any, of {effort.tables}, by the number of seeds:",
        ["workload", *(f"{count} seeds" for count in COUNTS)],
        rows,
    )


def _power(populations: dict[str, Population], effort: Effort) -> tuple[str, str]:
    rows = []
    for title, population in populations.items():
        for old, new in (("fifo", "srtf"), ("las", "srtf")):
            table = (old, new, *EQUALS[:4])
            powers = [power_over(population, table, count, effort.tables) for count in COUNTS]
            change = population[new][:, 0].mean() / population[old][:, 0].mean() - 1.0
            rows.append([title, f"{new} against {old}", f"{100 * change:+.0f} %", *map(_percent, powers)])
    result = f"A true change is told in {_span(rows, 4)} of tables with five seeds, and in {_span(rows, 5)} with ten."
    return result, _section(
        "Power",
        "How often a table of six policies (15 comparisons) tells a true change of mean JCT:",
        ["workload", "comparison", "true change", *(f"{count} seeds" for count in COUNTS)],
        rows,
    )


def _intervals(populations: dict[str, Population], effort: Effort) -> tuple[str, str]:
    rows = []
    for title, population in populations.items():
        for pair in PAIRS:
            for column, metric in enumerate(METRICS):
                found = [
                    _percent(coverage_over(population, pair, column, count, level, effort.tables))
                    for level, counts in LEVELS
                    for count in counts
                ]
                rows.append([title, f"{pair[1]} against {pair[0]}", f"`{metric}`", *found])
    heads = [f"{100 * level:.0f} %, {count} seeds" for level, counts in LEVELS for count in counts]
    result = (
        f"Intervals of 95 % hold the true change in {_span(rows, 4)} of tables with five seeds, those of 99 % in {_span(rows, 7)} with ten."
    )
    return result, _section(
        "Intervals of changes",
        "How often the interval over seeds holds the true change. Where a few seeds in a hundred decide a mean (loads as drawn), no method has enough in "
        "five seeds; more seeds help slowly.",
        ["workload", "comparison", "metric", *heads],
        rows,
    )


def _histories(populations: dict[str, Population], effort: Effort) -> tuple[str, str]:
    rows = []
    for title, workload in WORKLOADS.items():
        for pair in (("fifo", "srtf"), ("las", "srtf")):
            fresh = range(effort.seeds, effort.seeds + effort.histories)
            rows.append([title, f"{pair[1]} against {pair[0]}", _percent(history_coverage(workload, populations[title], pair, fresh))])
    result = f"The 90 % interval of a what-if on one history holds the change in {_span(rows, 2)} of histories."
    return result, _section(
        "What-if on one history",
        "`what-if --history` has one trace and makes others of its stretches. How often its 90 % interval holds the change in mean JCT over other traces of the "
        f"same kind, of {effort.histories} histories of 300 jobs. What a history does not hold, a rare long job or another load, no interval made of it can tell:",
        ["workload", "comparison", "90 % interval"],
        rows,
    )


def _guard(effort: Effort) -> tuple[str, str]:
    lengths = (200, 300, 1000)
    rows = []
    for cases in zip(*(guarded(jobs) for jobs in lengths)):
        shares = [case.unsteady(effort.runs if case.workload.jobs < 1000 else effort.runs // 2) for case in cases]
        lost = [_percent(lost_verdicts(shares[1], seeds)) for seeds in (5, 10, 20)] if cases[0].sustainable else ["", "", ""]
        rows.append([cases[0].title, "an error" if cases[0].sustainable else "right", *map(_percent, shares), *lost])
    lasting, others = ([row for row in rows if row[1] == said] for said in ("an error", "right"))
    result = f"Of runs of 300 jobs that can last, {_span(lasting, 3)} are called unsteady, of others {_span(others, 3)}."
    return result, _section(
        "The overload guard",
        "Share of runs that are called unsteady, and how likely more than half of 5, 10 and 20 seeds of 300 jobs are, so that a policy is in doubt by error:",
        ["what is run", "unsteady is", *(f"{jobs:,} jobs" for jobs in lengths), "5 seeds", "10 seeds", "20 seeds"],
        rows,
    )


def _start(effort: Effort) -> tuple[str, str]:
    rows = []
    for cluster, gpus, load in STARTS:
        found = empty_start(cluster, gpus, load, 1000, effort.runs)
        shares = [f"{100 * value:+.0f} %" for value in (found.plain, found.warmed, found.reported)]
        rows.append([f"{gpus}", f"{load:g}", f"{shares[0]} (standard error {100 * found.error:.0f} %)", *shares[1:]])
    result = f"The mean queueing of 1,000 jobs from an empty start is {_span(rows, 2)} off the steady state."
    return result, _section(
        "The empty start",
        f"Mean queueing of 1,000 one-GPU jobs with exponential durations under FIFO, mean of {effort.runs} runs, against Erlang's formula for the steady state: with all jobs, with "
        "`--warmup auto` (MSER-5), and what the guard's note estimates to be missing. No warm-up rule makes up for a run that is shorter than its queue takes to build up.",
        ["GPUs", "load", "all jobs", "`--warmup auto`", "estimated"],
        rows,
    )


def _span(rows: Sequence[Sequence[str]], *columns: int) -> str:
    """From the least to the most that these columns say."""
    found = sorted((row[column] for row in rows for column in columns), key=lambda text: float(text.split()[0]))
    return f"{found[0].split()[0]} to {found[-1].split(' (')[0]}"


def _section(title: str, text: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"## {title}", "", text, "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 or not share else f"{100 * share:.1f} %"
