"""The Chrome trace: every allocation on every device, whole nodes as processes."""

import json
from dataclasses import replace

import pytest
from tests.lab.report.example_runs import example_run

from gantline.lab.report.chrome_trace import trace_events, write_chrome_trace

RUN = example_run(jobs=30, gap=200)
TOLD = replace(RUN, summary={**RUN.summary, "node_gpus": [4, 4]})
START = RUN.jobs["arrival"].min()


def of_kind(events, phase):
    return [event for event in events if event["ph"] == phase]


def test_slices_are_the_allocations_device_by_device():
    slices = of_kind(trace_events(TOLD), "X")
    assert len(slices) == RUN.allocations["gpus"].sum()
    assert sum(s["dur"] for s in slices) / 1e6 == pytest.approx(RUN.jobs["gpu_seconds"].sum())
    first = RUN.allocations.row(0, named=True)
    mine = [s for s in slices if s["name"] == first["job"]]
    assert [s["tid"] for s in mine] == first["devices"]
    assert mine[0]["ts"] == pytest.approx((first["start"] - START) * 1e6, abs=0.01)
    assert mine[0]["args"] == {"gpus": first["gpus"], "type": "v100", "reason": "finished", "user": RUN.jobs["user"][0]}


def test_devices_stand_under_their_nodes():
    events = list(trace_events(TOLD))
    nodes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert nodes == {0: "cluster", 1: "node 0", 2: "node 1"}
    assert all(e["pid"] == 1 + e["tid"] // 4 for e in of_kind(events, "X"))
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} <= {f"GPU {i}" for i in range(8)}


def test_without_known_nodes_all_devices_belong_to_the_cluster():
    assert {e["pid"] for e in of_kind(trace_events(RUN), "X")} == {0}


def test_slices_on_a_device_do_not_overlap():
    free_at: dict[int, float] = {}
    for event in of_kind(trace_events(RUN), "X"):
        assert event["ts"] >= free_at.get(event["tid"], 0.0) - 0.01
        free_at[event["tid"]] = event["ts"] + event["dur"]


def test_counters_follow_the_series():
    counters = [e for e in of_kind(trace_events(RUN), "C") if e["name"] == "jobs"]
    assert [e["args"]["waiting"] for e in counters] == RUN.series["queued"].to_list()


def test_the_file_is_one_json_object(tmp_path):
    odd = example_run(jobs=3, names=['"quoted"\n</script>', "\u2028"])
    read = json.loads(write_chrome_trace(odd, tmp_path / "new" / "trace.json").read_text(encoding="utf-8"))
    assert '"quoted"\n</script>' in {e["name"] for e in read["traceEvents"]}
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["trace.json"]
