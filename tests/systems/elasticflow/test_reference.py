"""ElasticFlow's own runs, job by job: admitted, start, end, verdict and GPU history."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from typing import Any

import pytest
from tests.cli.conftest import Cli, cli, folder  # noqa: F401
from tests.simulator.references import one_in, reference

from gantline import simulate
from gantline.simulator.run import Run
from gantline.traces.importers import import_trace
from gantline.traces.trace import Trace

SLOTS = {"pollux195T4": 60, "cluster10": 60, "cluster06x300": 60}
SCHEDULES = {
    "edf": ("edf", "off"),
    "edf-accessctrl": ("edf", "single"),
    "ef": ("elasticflow", "off"),
    "ef-accessctrl": ("elasticflow", "group"),
}
WORKLOADS = ("tiny", "25of195", "195", "pollux195T4", "syn100", "cluster10", "cluster03x300", "cluster06x300", "be0.3")


@cache
def trace_of(workload: str) -> Trace:
    table = reference(f"elasticflow/throughputs/{'T4' if 'T4' in workload else 'A100'}.csv")
    return import_trace("elasticflow", reference(f"elasticflow/trace_{workload}.csv.gz"), {"throughputs": table})


def simulated(workload: str, cluster: str, policy: str, plain: bool = False, **settings: Any) -> Run:
    nodes, gpus = cluster[1:].split("g")
    kind = "t4" if "T4" in workload else "a100"
    given = {} if plain else {"compat": "elasticflow", **settings}
    return simulate(
        trace_of(workload), f"{kind}:{nodes}x{gpus}", policy, settings=given, regime="elasticflow", round=SLOTS.get(workload, 240)
    )


def histories(run: Run) -> dict[str, str]:
    """Per job "time:GPUs" at every change."""
    found: dict[str, list[tuple[float, float, int]]] = {}
    for job, start, end, gpus in run.allocations.sort("start").select("job", "start", "end", "gpus").iter_rows():
        spans = found.setdefault(job, [])
        if spans and spans[-1][1] == start and spans[-1][2] == gpus:
            spans[-1] = (spans[-1][0], end, gpus)
        else:
            spans.append((start, end, gpus))
    told = {}
    for job, spans in found.items():
        marks = []
        for k, (start, end, gpus) in enumerate(spans):
            marks.append(f"{start:.0f}:{gpus}")
            if k + 1 == len(spans) or spans[k + 1][0] > end:
                marks.append(f"{end:.0f}:0")
        told[job] = " ".join(marks)
    return told


def records(workload: str, schedules: tuple[str, ...] = tuple(SCHEDULES)) -> dict[tuple[str, str], list[dict[str, str]]]:
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    with gzip.open(reference(f"elasticflow/per_job_{workload}.csv.gz"), "rt") as file:
        for row in csv.DictReader(file):
            if row["schedule"] in schedules:
                found.setdefault((row["cluster"], row["schedule"]), []).append(row)
    return found


def names_of(workload: str) -> list[str]:
    with gzip.open(reference(f"elasticflow/trace_{workload}.csv.gz"), "rt") as file:
        return [row["job_id"] for row in csv.DictReader(file)]


def whole(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.0f}"


@pytest.mark.parametrize("workload", one_in(6, WORKLOADS))
def test_every_recorded_job_comes_out_as_it_was(workload: str) -> None:
    names, compared = names_of(workload), 0
    for (cluster, schedule), rows in records(workload).items():
        policy, admission = SCHEDULES[schedule]
        run = simulated(workload, cluster, policy, admission=admission)
        jobs = {job["job"]: job for job in run.jobs.iter_rows(named=True)}
        history = histories(run)
        for row in rows:
            name = names[int(row["job_idx"])]
            job = jobs[name]
            met = "1" if job["met"] or (job["state"] == "completed" and job["met"] is None) else "0"
            ours = (str(int(job["state"] != "rejected")), whole(job["first_start"]), whole(job["finish"]), met, history.get(name, ""))
            assert ours == tuple(row[key] for key in ("admitted", "start", "end", "met", "gpus")), (schedule, cluster, name)
            assert whole(job.get("exact_end")) == row["exact_end"], (schedule, cluster, name)
            compared += 1
    assert compared


@pytest.mark.parametrize(
    ("policy", "settings", "ratio", "mean"),
    one_in(
        3,
        [
            ("elasticflow", {"admission": "single"}, 0.903, 21183),
            ("elasticflow", {"spare_order": "least_added"}, 0.759, 15046),
            ("elasticflow", {"overhead": "none"}, 0.805, 20442),
            ("elasticflow", {"judge": "slot"}, 0.687, 18893),
            ("elasticflow", {"admission": "off", "judge": "exact"}, 0.308, 54461),
            ("edf", {"scale_limit": "knee"}, 0.277, 77791),
            ("edf", {"admission": "single", "scale_limit": "knee"}, 0.554, None),
        ],
    ),
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else str(value),
)
def test_what_each_slip_costs(policy: str, settings: dict[str, str], ratio: float, mean: float | None) -> None:
    told = simulated("195", "n16g8", policy, **settings).summary
    assert round(told["deadline_ratio"], 3) == ratio
    assert mean is None or round(told["average_jct"]) == mean
