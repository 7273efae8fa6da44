"""What Slurm prints as JSON gives the same snapshot as what it prints as text; a mistake names the file and the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.live.watch.recordings import NOW, job, node, recording

from gantline.cli.main import main
from gantline.core.errors import UsageError
from gantline.live.watch.slurm_recording import script
from gantline.live.watch.slurm_snapshot import watched
from gantline.live.watch.slurm_state import read_state


def json_job(id: int, gpus: int = 1, ran: int | None = None, hosts: str = "", limit: int = 60, **more: Any) -> dict[str, Any]:
    """A job as squeue of Slurm 22.05 prints it."""
    state = {"job_state": "PENDING", "state_reason": "Priority", "start_time": 0}
    if ran is not None:
        state = {"job_state": "RUNNING", "state_reason": "None", "start_time": NOW - ran}
    return {
        "job_id": id, "array_job_id": 0, "array_task_id": None, "user_name": "ann", "partition": "main", "priority": 1, "node_count": 1,
        "submit_time": NOW - (ran or 0), "eligible_time": NOW - (ran or 0), "end_time": 0, "time_limit": limit, "tasks": 1, "cpus": 1,
        "tres_per_node": f"gres:gpu:{gpus}", "tres_alloc_str": "", "tres_req_str": "cpu=1,node=1,billing=1", "nodes": hosts,
        "name": "=== jobs", **state, **more,
    }  # fmt: skip


def newer(number: int) -> dict[str, Any]:
    """A number as Slurm prints it since 23.02."""
    return {"set": True, "infinite": False, "number": number}


def as_newer(one: dict[str, Any]) -> dict[str, Any]:
    numbers = ("priority", "node_count", "submit_time", "eligible_time", "start_time", "end_time", "time_limit", "tasks", "cpus")
    return {**one, **{name: newer(one[name]) for name in numbers}, "job_state": [one["job_state"]]}


def _seen(jobs: str, **more: str) -> dict[str, Any]:
    return watched(read_state(recording(jobs, **more))).as_json()


TEXT = [job("7", 4, ran=100, hosts="node0"), job("8_1", 2, NODES="2"), job("8_2", 2, NODES="2"), job("9", 1, limit="2:00:00")]
JOBS = [
    json_job(7, 4, ran=100, hosts="node0"),
    json_job(8, 2, node_count=2, array_job_id=8, array_task_string="1-2%1"),
    json_job(9, 1, limit=120),
]


@pytest.mark.parametrize("of_version", [lambda one: one, as_newer], ids=["22.05", "23.02"])
def test_jobs_are_the_same_in_json(of_version: Any) -> None:
    text = watched(read_state(recording(TEXT))).as_json()
    assert _seen(json.dumps({"meta": {}, "errors": [], "jobs": [of_version(one) for one in JOBS]}, indent=1)) == text


def test_nodes_partitions_reservations_and_the_past_are_the_same_in_json() -> None:
    tres = "cpu=8,gres/gpu=2,node=1"
    text = {
        "partitions": "PartitionName=main PriorityTier=3 MaxTime=02:00:00 State=UP",
        "reservations": f"ReservationName=r StartTime={NOW + 60} EndTime={NOW + 120} Nodes=node1 Users=ann",
        "past": "JobID|User|Partition|Submit|Start|ElapsedRaw|Timelimit|State|AllocTRES|ReqTRES|NNodes|Priority\n"
        + "".join(f"{k}|ann|main|{NOW - 900 + k}|{NOW - 800}|{k + 1}|00:01:00|COMPLETED|{tres}|{tres}|1|7\n" for k in range(10, 20))
        + f"2_4|bob|main|{NOW - 90}|{NOW - 80}|15|00:01:00|FAILED||cpu=2,gres/gpu:a100=3|1|7\n",
        "nodes": "\n".join([node("node0"), node("node1", state="IDLE+DRAIN", features="fast,big"), node("node2", 0, state="DOWN")]),
    }
    nodes = [
        {
            "name": f"node{k}", "gres": "" if k == 2 else "gpu:a100:4", "cpus": 16, "effective_cpus": 16, "real_memory": 1000,
            "state": state, "partitions": ["main"], "active_features": features, "weight": 1,
        }
        for k, (state, features) in enumerate(((["IDLE"], []), (["IDLE", "DRAIN"], ["fast", "big"]), (["DOWN"], [])))
    ]  # fmt: skip
    partition = {"name": "main", "priority": {"tier": 3}, "maximums": {"time": newer(120)}, "partition": {"state": ["UP"]}}
    reserved = {"name": "r", "start_time": newer(NOW + 60), "end_time": newer(NOW + 120), "node_list": "node1", "users": "ann"}
    counts = [{"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu", "count": 2}, {"type": "node", "count": newer(1)}]
    shown = {"user": "ann", "partition": "main", "priority": newer(7), "allocation_nodes": 1, "state": {"current": ["COMPLETED"]}}
    past: list[dict[str, Any]] = [
        {
            **shown, "job_id": k, "tres": {"allocated": counts, "requested": counts},
            "time": {"submission": NOW - 900 + k, "start": NOW - 800, "elapsed": k + 1, "limit": newer(1)},
        }
        for k in range(10, 20)
    ]  # fmt: skip
    asked = [{"type": "cpu", "name": None, "count": 2}, {"type": "gres", "name": "gpu:a100", "count": 3}]
    failed = {"user": "bob", "state": {"current": "FAILED"}, "tres": {"allocated": [], "requested": asked}}
    times = {"submission": NOW - 90, "start": NOW - 80, "elapsed": 15, "limit": 1}
    past.append({**shown, **failed, "job_id": 6, "array": {"job_id": 2, "task_id": newer(4)}, "time": times})
    lists = {"nodes": nodes, "partitions": [partition], "reservations": [reserved]}
    as_json = {name: json.dumps({name: value}) for name, value in lists.items()} | {"past": json.dumps({"jobs": past})}
    of_text = watched(read_state(recording(TEXT, **text)))
    assert watched(read_state(recording(TEXT, **as_json))) == of_text
    assert round(17 / 60, 6) in of_text.ratios
    assert [job["gpus"] for job in of_text.arrivals][:12] == [2] * 10 + [4, 3], "as given or asked for, in order of submission"
    older = [{**one, "state": one["state"][0].lower(), "state_flags": one["state"][1:]} for one in nodes]  # as sinfo of 22.05 has them
    assert watched(read_state(recording(TEXT, **{**as_json, "nodes": json.dumps({"nodes": older})}))) == of_text


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ('{"jobs": [', r"now.txt, section jobs: it is no JSON"),
        ('{"nodes": []}', r"now.txt, section jobs: there is no list 'jobs' in it"),
        (json.dumps({"jobs": [json_job(1), {"job_id": 2}]}), r"now.txt, section jobs, jobs\[1\]: the field job_state is missing"),
        (
            json.dumps({"jobs": [json_job(1, array_job_id=1, array_task_string="0-x")]}),
            r"jobs\[0\], field array_task_string: '0-x' is no range of tasks",
        ),
    ],
)
def test_a_mistake_names_the_file_and_the_field(jobs: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_state(recording(jobs), "now.txt")


def test_questions_are_answered_from_a_recording_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "now.txt"
    file.write_text(recording(json.dumps({"jobs": JOBS})))
    assert main(["forecast", "--watch", f"slurm:{file}", "-o", "json"]) == 0
    assert {"8_1", "8_2", "9"} <= {str(one["job"]) for one in json.loads(capsys.readouterr().out)["jobs"]}
    assert main(["watch", "slurm", "--json", "--from", str(file)]) == 2


def test_the_script_asks_for_json_and_falls_back_to_text() -> None:
    lines = script(as_json=True).splitlines()
    assert any(line.startswith("{ squeue -a --json 2>/dev/null && echo; } || squeue -a -r") for line in lines)
    assert not any("--json" in line for line in script().splitlines())
