"""What a recording of Slurm says becomes a snapshot, and what it cannot hold is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.live.watch.recordings import NOW, job, node, recording
from tests.typed import typed

from gantline.cli.main import main
from gantline.core.errors import UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.live.watch.slurm_advice import advise_order
from gantline.live.watch.slurm_recording import COMMANDS, script
from gantline.live.watch.slurm_snapshot import watched
from gantline.live.watch.slurm_state import host_names, read_state
from gantline.live.watch.watched import ClusterLook
from gantline.policies.registry import make_policy
from gantline.simulator.roll_forward import carry_out


def _look(*jobs: str, nodes: list[str] | None = None, **more: str) -> ClusterLook:
    return watched(read_state(recording(list(jobs), nodes, **more)))


def _jobs(look: ClusterLook) -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in look.snapshot["jobs"]}


def _acts(look: ClusterLook) -> dict[str, str]:
    snapshot = decode_snapshot(look.snapshot)
    return {one.job: one.act for one in carry_out(snapshot, make_policy(look.policy, look.settings).decide(snapshot))}


def test_running_jobs_hold_devices_of_their_nodes_and_have_run_as_long_as_slurm_says() -> None:
    look = _look(job("7", 4, ran=100, hosts="node0"), job("8_1", 2, ran=50, hosts="node[1-2]", NODES="2"))
    assert _jobs(look)["7"]["devices"] == [0, 1, 2, 3]
    assert _jobs(look)["7"]["service"] == 100
    assert _jobs(look)["8_1"]["devices"] == [4, 5, 8, 9]  # two on each of its nodes
    assert look.snapshot["now"] + look.zero == NOW


def test_gpus_are_counted_per_node_per_task_and_per_job() -> None:
    per_task = {"TRES_PER_NODE": "N/A", "TRES_PER_TASK": "gres:gpu:2", "TASKS": "2"}
    per_job = {"TRES_PER_NODE": "N/A", "TRES_PER_JOB": "gres:gpu:a100:3"}
    jobs = _jobs(_look(job("1", 2, NODES="3"), job("2", 0, **per_task), job("3", 0, **per_job)))
    assert [jobs[name]["gpus"] for name in ("1", "2", "3")] == [6, 4, 3]
    assert jobs["1"]["options"][0]["nodes"] == 3


def test_age_is_taken_out_of_priorities_and_comes_back_with_time() -> None:
    jobs = _jobs(_look(job("old", 1, waited=43_270, PRIORITY="700"), job("new", 1, PRIORITY="300")))
    assert jobs["old"]["priority"] == 200.0  # 500.8 for its age, of which Slurm shows whole numbers
    assert jobs["new"]["priority"] == 300.0


def test_slurms_settings_are_those_of_the_policy_in_force() -> None:
    look = _look()
    assert (look.policy, look.settings) == (
        "slurm",
        {"age_weight": 1000.0, "max_age": 86_400.0, "fill": True, "depth": 200, "window": 3600.0},
    )
    strict = _look(config="PriorityType = priority/basic\nSchedulerType = sched/builtin")
    assert (strict.settings["fill"], strict.settings["age_weight"]) == (False, 0.0)


def test_a_job_goes_only_to_nodes_of_its_partition_type_and_features() -> None:
    nodes = [
        node("a", partitions="main"),
        node("b", partitions="debug,main", features="big"),
        node("c", partitions="debug", kind="v100"),
    ]
    partitions = "PartitionName=main PriorityTier=1 State=UP\nPartitionName=debug PriorityTier=5 State=UP"
    wanted = [
        job("anywhere", 1),
        job("debug", 1, PARTITION="debug"),
        job("typed", 1, PARTITION="debug", TRES_PER_NODE="gres:gpu:v100:1"),
        job("featured", 1, FEATURES="big"),
        job("either", 1, PARTITION="main,debug"),
    ]
    jobs = _jobs(_look(*wanted, nodes=nodes, partitions=partitions))
    types = {name: [option["type"] for option in entry["options"]] for name, entry in jobs.items()}
    assert types == {
        "anywhere": ["a100.main", "a100.debug.main.big"],
        "debug": ["a100.debug.main.big", "v100"],
        "typed": ["v100"],
        "featured": ["a100.debug.main.big"],
        "either": ["a100.main", "a100.debug.main.big", "v100"],
    }
    assert jobs["debug"]["metrics"]["partition_tier"] == 5


def test_jobs_that_wait_for_something_else_are_left_out_and_counted() -> None:
    look = _look(job("1", REASON="Dependency"), job("2", REASON="JobHeldUser"), job("3", REASON="JobHeldUser"), job("4", REQ_NODES="node1"))
    assert not look.snapshot["jobs"]
    text = "\n".join(look.notes)
    assert "2 jobs left out, which wait for something else than room (JobHeldUser)" in text
    assert "1 job left out, which wait for something else than room (Dependency)" in text
    assert "1 job left out, which ask for particular nodes or a reservation" in text


def test_nodes_that_are_down_drain_or_are_reserved_take_no_job() -> None:
    nodes = [node("a", state="DOWN*"), node("b", state="MIXED+DRAIN"), node("c", state="IDLE")]
    window = f"ReservationName=maint StartTime={NOW + 600} EndTime={NOW + 4200} Nodes=c Users=root State=INACTIVE"
    look = _look(job("long", 4), job("short", 4, limit="5:00"), nodes=nodes, reservations=window)
    assert look.snapshot["down"] == ["a"]
    assert look.snapshot["cordoned"] == [4, 5, 6, 7]
    assert _acts(look) == {"long": "waits", "short": "starts"}  # the long one would not be over when the reservation begins


def test_run_times_of_ended_jobs_are_shares_of_their_limits() -> None:
    ended = [
        job(f"e{k}", 1, ran=600, limit="20:00", STATE="COMPLETED", END_TIME=str(NOW - 600 + 60 * (k % 10 + 1)), hosts="node0")
        for k in range(20)
    ]
    past = "JobID|ElapsedRaw|Timelimit|State\n99|1200|00:20:00|TIMEOUT\n98|10|UNLIMITED|COMPLETED\n97|x|1:00|COMPLETED"
    look = _look(*ended, past=past)
    assert look.run_times == "run times are known of 21 ended jobs"
    assert len(look.ratios) == 21 + 20, "and twenty more of which any share is as likely"
    assert look.ratios.count(0.5) == 2 + 1
    assert look.ratios[-2:] == (1.0, 1.0)
    assert "any up to the limit is as likely" in _look().run_times


def test_names_of_users_making_cannot_pass_for_anything_else() -> None:
    assert not {"JobName", "Comment", "Name", "WorkDir", "Command"} & {field.partition(":")[0] for field in COMMANDS["jobs"][-1].split(",")}
    look = _look(job("1", FEATURES="x|y|Priority=9"))  # the only free text, and it comes last
    assert "ask for features in a way that is not read" in look.notes[0]


def test_advice_is_the_commands_that_change_the_order_and_no_more_than_asked_for() -> None:
    runs = [job(str(k), 4, ran=5, hosts=f"node{k}", limit="2:00") for k in range(3)]
    waits = [job("long", 4, waited=9, limit="30:00"), job("short", 4, waited=8, limit="1:00"), job("last", 4, waited=7, limit="50:00")]
    look = _look(*runs, *waits)
    assert look.queue == ("long", "short", "last")
    assert _look(job("12"), job("9_2"), job("9_1")).queue == ("9_1", "9_2", "12")  # of one second and priority: by number
    advice = advise_order(look, "sjf", {})
    assert [" ".join(command) for command in advice.commands] == [
        "scontrol update JobId=short Priority=4000000000",
        "scontrol update JobId=long Priority=3999999999",
    ]
    assert advise_order(look, "sjf", {}, at_most=1).left == 1
    assert advise_order(look, "fifo", {}).lines() == ["Slurm's order is that of fifo: nothing to change"]
    stopped = advise_order(
        _look(job("0", 4, ran=5, hosts="node0"), job("1", 4, limit="1:00"), nodes=[node("node0")]), "srtf", {}, requeue=True
    )
    assert stopped.commands[0] == ("scontrol", "requeue", "0")


def test_hosts_are_spelled_out() -> None:
    assert host_names("gpu[01-03,7],login,r[1-2]n[0-1]") == ("gpu01", "gpu02", "gpu03", "gpu7", "login", "r1n0", "r1n1", "r2n0", "r2n1")
    with pytest.raises(UsageError, match="too many hosts"):
        host_names("n[0-99999]x[0-99999]")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no section 'time'"),
        (recording([]).replace("=== jobs", "=== work"), "no section 'jobs'"),
        (recording([], nodes=[]), "no node is listed"),
        (recording([]).replace(f"{NOW} +0000", "noon"), "'noon' is no time"),
        (recording([]).replace("|PRIORITY|", "|RANK|"), "columns PRIORITY are missing"),
        (recording(["1|ann"]), "line 2 has 2 columns"),
    ],
)
def test_a_recording_that_is_none_is_refused_with_what_is_missing(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what.replace("|", r"\|")):
        read_state(text)


def test_the_script_asks_what_the_command_asks(tmp_path: Path) -> None:
    for name, command in COMMANDS.items():
        assert f"=== {name}" in script()
        assert command[0] in script()


@pytest.mark.parametrize(
    "words",
    [
        ("watch", "slurm", "--every", "5"),
        ("watch", "slurm", "--at-most", "5"),
        ("watch", "slurm", "--apply"),
        ("watch", "slurm", "--script", "--out", "now.json"),
        ("watch", "slurm", "--script", "--check", "looks"),
        ("watch", "slurm", "--from", "now.txt", "--advise", "srtf", "--apply"),
        ("what-if", "--watch", "slurm:now.txt", "--history", "jobs.csv"),
        ("what-if", "--watch", "slurm:now.txt", "--snapshot", "now.json"),
        ("forecast", "--watch", "slurm:now.txt", "--check", "jobs.csv"),
    ],
)
def test_an_option_that_would_decide_nothing_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(words)) == 2
    assert "no such file" not in capsys.readouterr().err


# What Slurm prints as JSON gives the same snapshot as what it prints as text; a mistake names the file and the field.


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
    assert typed(f"forecast --watch slurm:{file} -o json") == 0
    assert {"8_1", "8_2", "9"} <= {str(one["job"]) for one in json.loads(capsys.readouterr().out)["jobs"]}
    assert typed(f"watch slurm --json --from {file}") == 2


def test_the_script_asks_for_json_and_falls_back_to_text() -> None:
    lines = script(as_json=True).splitlines()
    assert any(line.startswith("{ squeue -a --json 2>/dev/null && echo; } || squeue -a -r") for line in lines)
    assert not any("--json" in line for line in script().splitlines())
