"""The small files that pages may use without showing them: a trace, a cluster and a finished run."""

from __future__ import annotations

from pathlib import Path

CLUSTER = """\
nodes:
  - count: 6
    type: v100
    gpus: 4
    cpus: 32
    memory: 256
    rack: r1
  - count: 2
    type: a100
    gpus: 8
    cpus: 96
    memory: 1024
    rack: r2
"""


def jobs_csv() -> str:
    """Two hours of jobs: sizes are powers of two, lengths from five minutes to two hours, bursts of three.

    Pages show what a command is and that it works, for which few jobs do: most of what their tests take goes to running them.
    """
    lines = ["job,arrival,gpus,duration,user,queue"]
    for number in range(24):
        arrival = 600 * (number // 3) + 20 * (number % 3)
        gpus = (1, 1, 2, 4, 1, 8, 2, 16)[number % 8]
        duration = 300 + (number * 7919) % 7_000
        user = ("ana", "bo", "chen", "dina")[number % 4]
        queue = ("research", "production")[number % 5 == 0]
        lines.append(f"job-{number:02d},{arrival},{gpus},{duration},{user},{queue}")
    return "\n".join(lines) + "\n"


def write_samples(folder: Path) -> None:
    """Put ``jobs.csv`` and ``cluster.yaml`` into a folder."""
    (folder / "jobs.csv").write_text(jobs_csv(), encoding="utf-8")
    (folder / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")


def write_run_sample(folder: Path) -> None:
    """Simulate the sample trace and store the run as the directory ``run``."""
    from gantline import simulate
    from gantline.lab.report.rundir import write_run

    write_run(simulate(folder / "jobs.csv", "8x4", "fifo"), folder / "run")
