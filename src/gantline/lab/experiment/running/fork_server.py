"""The process that workers of a sweep are forked from: it has imported what they need.

A forked worker costs a few hundredths of a second where a fresh interpreter takes most of one to import. Forking is safe only
while no thread holds a lock, so this process calls no library, keeps libraries from starting threads of their own, and checks its threads
before it forks. Where there are others it refuses, and workers are fresh interpreters (`processes`).
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from importlib import import_module
from pathlib import Path

import polars as pl

from gantline.fork_server import serve
from gantline.lab.experiment.digest import program_digest
from gantline.lab.experiment.running.worker import answer_tasks

NEEDED = (
    "gantline.lab.experiment.running.worker",
    "gantline.traces.generators.drawing",
    "gantline.traces.cells",
    "gantline.traces.faults",
    "gantline.traces.read",
    "gantline.traces.rename",
    "gantline.engine.drivers.table_loop",
    "gantline.traces.profiled_sizes",
    "gantline.traces.performance",
    "gantline.models.parameter_servers",
    "gantline.models.links.slowest_link_scaling",
    "numpy.ma",
    "gantline.core.machine_code.object_code",
)
"""What every run of a worker imports, or many do, with all that comes along."""

ALLOCATOR, QUIET = "_RJEM_MALLOC_CONF", "background_thread:false"
"""For the environment: the memory allocator of polars starts no threads."""

_HARMLESS = {"polars-ooc-clea"}  # asleep until data are moved to disk, which never happens before a fork


def is_alone() -> bool:
    """Whether no thread runs here but this one and those that sleep and hold nothing."""
    own = threading.get_native_id()
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) != own:
            name, state = (task / "comm").read_text().strip(), (task / "stat").read_text().rpartition(")")[2].split()[0]
            if name not in _HARMLESS or state != "S":
                return False
    return True


def serve_workers() -> int:
    """Import everything, and fork workers until the sweep has ended."""
    os.dup2(2, 1)
    return serve(_be_worker, _import_all, lambda: "" if is_alone() else "other threads run here", ends_all=True)


def _import_all() -> str:
    for name in NEEDED:
        import_module(name)
    program_digest()  # of all sources, which every result bears
    os.environ.pop(ALLOCATOR, None)  # not for what policies start
    return ""


def _be_worker(request: bytes, files: list[int]) -> int:
    """Answer the tasks that come on the first file; the second is for what a crash leaves."""
    channel, crash_report = socket.socket(fileno=files[0]), open(files[1], "wb", buffering=0)  # noqa: SIM115 (it ends with the process)
    try:
        with channel.makefile("r", encoding="utf-8") as tasks, channel.makefile("w", encoding="utf-8") as answers:
            pl.DataFrame({"one": [2, 1]}).lazy().sort("one").collect()  # a hang of its threads is seen before a task
            answers.write("ready\n")
            answers.flush()
            answer_tasks(tasks, answers, crash_report)
    except ConnectionError:  # the sweep was killed before there was a task
        return 1
    finally:
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    sys.exit(serve_workers())
