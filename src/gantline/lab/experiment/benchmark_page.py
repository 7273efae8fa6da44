"""The benchmark as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from gantline.lab.experiment.benchmark import (
    OWN_RULES,
    ROUND,
    RULES,
    SEEDS,
    SLOW,
    BenchmarkTable,
    all_policies,
    obstacle,
    row_texts,
    shown_metrics,
)
from gantline.traces.generators.presets import benchmark_traces

_HEAD = """\
# Benchmark

Five generated workloads of different character, every registered policy with its defaults where it applies, the same rules for all: a table
in which a new policy can be placed. The workloads are settings, not files; `gantline trace generate` draws them by name.

<!-- not run: it takes minutes and writes into the documentation -->
```console
$ gantline benchmark -o docs/benchmark.md
```

writes this page anew, and

<!-- not run: it takes minutes -->
```console
$ gantline benchmark --also ./mine.py:Mine
```

prints the tables with a row for a policy of yours. `--workload swarm` runs one of them.

Rules: a decision every {round:g} s (`mixed`: {longer:g} s), placement `{placement}`, {costs} s lost at every start, resume, resize
and move (in one column nothing is lost: what a policy owes to stops that cost nothing), true durations known to policies that
ask for them (`--estimates oracle`), in `mixed` prices of {prices} per device-hour. Numbers are means over the seeds {seeds}; the best of a
column is bold, which is a number and no verdict: `gantline compare` has intervals. Metrics are defined in [Metrics](metrics.md).
Policies differ in what they need and in what they are for: one that is made for fairness or for deadlines should not be judged by its mean
JCT.
"""


def benchmark_page(tables: Sequence[BenchmarkTable]) -> str:
    """The whole page."""
    seeds = ", ".join(map(str, SEEDS[:-1])) + f" and {SEEDS[-1]}"
    own = OWN_RULES["mixed"]
    head = _HEAD.format(round=ROUND, longer=own["round"], prices=own["prices"].replace(",", ", "), seeds=seeds, **RULES)
    return "\n".join([head, *(table_section(table) for table in tables), *_absent(tables)])


def table_section(table: BenchmarkTable) -> str:
    """One workload: what it is, the table, and the policies that could not run."""
    made = benchmark_traces()[table.workload]
    titles = [metric.title for metric in shown_metrics(table)]
    lines = [f"## {made.name}", "", f"{made.summary[:1].upper()}{made.summary[1:]}. Cluster `{made.cluster}`.", ""]
    lines += ["| policy | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    lines += [benchmark_row(policy, cells) for policy, cells in row_texts(table).items()]
    slow = [f"`{policy}`" for policy in SLOW if policy in table.rows["policy"]]
    if slow:
        text = f"Of seed {SEEDS[0]} alone and only with stops that cost, because their decisions take long: {', '.join(slow)}."
        lines += ["", f"{text} One seed is not compared with means of {len(SEEDS)}: such a row is never best."]
    doubts: dict[str, list[str]] = {}
    for policy, text in table.rows.select("policy", "doubts").rows():
        doubts.setdefault(text, []).append(f"`{policy}`")
    lines += [line for text, names in doubts.items() if text for line in ("", f"Marked (!) and never best: {', '.join(names)}; {text}.")]
    for message in dict.fromkeys(message for _, message in table.failures):
        names = ", ".join(f"`{policy}`" for policy, reason in table.failures if reason == message)
        lines += ["", f"Not in the table: {names} ({message})."]
    return "\n".join(lines) + "\n"


def _absent(tables: Sequence[BenchmarkTable]) -> list[str]:
    """Registered policies that some table does not have, by the reason."""
    reasons: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for choice in all_policies():
        obstacles = {table.workload: obstacle(choice.policy, table.workload) for table in tables}
        for reason in dict.fromkeys(filter(None, obstacles.values())):
            where = tuple(name for name, found in obstacles.items() if found == reason)
            reasons.setdefault((reason, where), []).append(choice.title)
    if not reasons:
        return []
    lines = ["## Which policy is missing from which table", ""]
    for (reason, where), names in reasons.items():
        place = "no table" if len(where) == len(tables) else "not in " + ", ".join(f"`{name}`" for name in where)
        lines.append(f"* In {place}:" if place == "no table" else f"* {place.capitalize()}:")
        lines[-1] += f" {', '.join(f'`{name}`' for name in names)}; {reason}."
    return ["\n".join(lines) + "\n"]


def benchmark_row(policy: str, cells: Sequence[str]) -> str:
    """A row of the table."""
    return f"| {policy} | " + " | ".join(cells) + " |"
