"""A run whose jobs are all submitted as values is the run whose jobs stand in a file, byte for byte; and its journal folds to it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.engine.assembly.from_trace import submissions
from gantline.engine.assembly.spec import RunSpec
from gantline.policies.registry import make_policy
from gantline.simulator.replay import RunRecord, read_record, record_lines, replay
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

CLUSTER = "a:3x4/16c,b:2x2/8c"


def trace(jobs: int = 30) -> Trace:
    rng = np.random.default_rng(11)
    rows: list[dict[str, Any]] = []
    for k, at in enumerate(np.sort(rng.integers(0, 2000, jobs))):  # whole seconds: some come together
        gpus, long = int(rng.integers(1, 4)), float(rng.integers(50, 900))
        ways = f"a:{gpus}/{gpus}={long}|b:{min(gpus, 4)}={long / 2}" if k % 3 else f"a:{gpus}={long}"
        row = {"job": f"j{k}", "arrival": float(at), "gpus": gpus, "duration": long, "options": ways}
        rows.append({**row, "priority": k % 2, "user": f"u{k % 4}"})
    return Trace.from_records(rows)


def nobody() -> Trace:
    """A trace without jobs: all of them are submitted."""
    return Trace(trace(1).frame.clear(), "nobody")


def bytes_of(run: Run) -> tuple[str, str, str]:
    return run.jobs.write_csv(), run.allocations.write_json(), run.summary["log_hash"]


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "tiresias", "fair-share", "equal-share"])
@pytest.mark.parametrize("options", [{}, {"round": 60.0}, {"costs": "start=5,resume=9,move=12,checkpoint=40", "placement": "consolidated"}])
def test_submitted_one_by_one_or_read_from_a_file(policy: str, options: dict[str, Any]) -> None:
    checkpoint = 40.0 if "costs" in options else 0.0
    submitted = submissions(trace(), parse_cluster(CLUSTER), checkpoint=checkpoint)
    read = simulate(trace(), CLUSTER, policy, **options)

    assert bytes_of(simulate(nobody(), CLUSTER, policy, inputs=submitted, **options)) == bytes_of(read)


def test_its_journal_folds_to_the_same_run(tmp_path: Path) -> None:
    cluster, options = parse_cluster(CLUSTER), {"round": 60.0}
    run = simulate(nobody(), CLUSTER, "srtf", inputs=submissions(trace(), cluster), record=True, **options)
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line + "\n" for line in record_lines(run, "srtf", nobody(), cluster, RunSpec(**options))), encoding="utf-8")
    record = read_record(path)

    again = replay(record, make_policy("srtf"))
    assert again.difference is None
    assert again.decisions == run.journal.decisions > 20
    assert len(record.inputs) == 30

    longer = [{**line, "work": 2 * line["work"]} if line.get("job", {}).get("id") == "j3" else line for line in record.lines]
    other = replay(RunRecord(record.about, tuple(longer)), make_policy("srtf"))
    assert other.difference is not None  # a job that is twice as long is another run
