"""Recordings of a Slurm cluster that tests write themselves, in the words of Slurm 22.05."""

from __future__ import annotations

from gantline.live.watch.slurm_recording import JOB_FIELDS

NOW = 1_794_948_054
_HEADS = {
    "JobArrayID": "JOBID", "UserName": "USER", "PriorityLong": "PRIORITY", "SubmitTime": "SUBMIT_TIME", "EligibleTime": "ELIGIBLE_TIME",
    "StartTime": "START_TIME", "EndTime": "END_TIME", "TimeLimit": "TIME_LIMIT", "TimeUsed": "TIME", "NumNodes": "NODES", "NumCPUs": "CPUS",
    "NumTasks": "TASKS", "tres-per-job": "TRES_PER_JOB", "tres-per-node": "TRES_PER_NODE", "tres-per-task": "TRES_PER_TASK",
    "tres-alloc": "TRES_ALLOC", "ReqNodes": "REQ_NODES", "ExcNodes": "EXC_NODES", "Feature": "FEATURES",
}  # fmt: skip
HEADS = [_HEADS.get(name, name.upper()) for name in JOB_FIELDS]


def job(name: str, gpus: int = 1, *, waited: int = 0, ran: int | None = None, hosts: str = "", limit: str = "1:00:00", **cells: str) -> str:
    """A line of squeue: a job that waits, or one that has run for so long."""
    state = (
        {"STATE": "PENDING", "REASON": "Priority"} if ran is None else {"STATE": "RUNNING", "START_TIME": str(NOW - ran), "REASON": "None"}
    )
    asked = {"TRES_PER_NODE": f"gres:gpu:{gpus}"} if gpus else {}
    usual = {
        "JOBID": name, "USER": "ann", "PARTITION": "main", "PRIORITY": "1", "SUBMIT_TIME": str(NOW - waited - (ran or 0)), "NODES": "1",
        "CPUS": "1", "TIME_LIMIT": limit, "NODELIST": hosts, "TASKS": "1", "TRES_ALLOC": "cpu=1,node=1,billing=1",
    }  # fmt: skip
    row = {**usual, **state, **asked, **cells}
    return "|".join(f"{row.get(head, 'N/A'):20}" for head in HEADS) + "|"


def node(name: str, gpus: int = 4, state: str = "IDLE", partitions: str = "main", kind: str = "a100", features: str = "(null)") -> str:
    gres = f"gpu:{kind}:{gpus}" if gpus else "(null)"
    return (
        f"NodeName={name} Arch=x86_64 CPUAlloc=0 CPUEfctv=16 CPUTot=16 ActiveFeatures={features} Gres={gres} OS=Linux 6.1 #1 SMP "
        f"RealMemory=1000 State={state} Weight=1 Partitions={partitions} "
    )


def recording(jobs: list[str] | str, nodes: list[str] | str | None = None, **more: str) -> str:
    """A whole recording; jobs and nodes are lines of their sections, or these themselves.

    `config`, `partitions`, `reservations` and `past` take the place of the usual ones.
    """
    nodes = [node(f"node{k}") for k in range(3)] if nodes is None else nodes
    usual = {
        "time": f"{NOW} +0000",
        "config": "PriorityType            = priority/multifactor\nPriorityWeightAge       = 1000\nPriorityMaxAge          = 1-00:00:00\n"
        "SchedulerType           = sched/backfill\nSchedulerParameters     = bf_max_job_test=200,bf_window=60",
        "nodes": nodes if isinstance(nodes, str) else "\n".join(nodes),
        "partitions": "PartitionName=main PriorityTier=1 MaxTime=UNLIMITED State=UP",
        "reservations": "No reservations in the system",
        "jobs": jobs if isinstance(jobs, str) else "\n".join(["|".join(HEADS) + "|", *jobs]),
    }
    return "".join(f"=== {name}\n{text}\n" for name, text in {**usual, **more}.items())
