"""Workers forked from a process that has imported everything: they import next to nothing, and are not forked where that is unsafe."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Event, Thread

import pytest

from gantline.fork_server import ForkServer
from gantline.lab.experiment.running import processes
from gantline.lab.experiment.running.fork_server import ALLOCATOR, QUIET, is_alone
from gantline.lab.experiment.running.processes import ForkedProcess, FreshProcess, Starter, WorkerProcess

WORK = """
import json, sys, tempfile
from importlib import import_module
from gantline.lab.experiment.running.fork_server import NEEDED
for name in NEEDED:
    import_module(name)
had = set(sys.modules)
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.experiment.running.tasks import Task, perform
setting = Setting(TraceSource(generator="day", settings={"jobs": 20, "gpus": 16}), "4x4", "fifo")
with tempfile.TemporaryDirectory() as folder:
    perform(Task(setting, "a" * 64, folder))
    outcome = perform(Task(setting, "b" * 64, folder))
print(json.dumps([outcome.state, sorted(set(sys.modules) - had)]))
"""


def end(worker: WorkerProcess) -> int:
    worker.signal(signal.SIGKILL)
    return worker.end()[1]


def test_a_forked_worker_imports_only_what_its_trace_and_policy_need() -> None:
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", WORK], check=True, capture_output=True, text=True)
        state, new = json.loads(done.stdout)
        assert state == "done"
        if "numba" not in new:
            break  # else kernels had to be compiled; they are stored from here on
    assert not {"numba", "scipy.optimize", "scipy.special", "polars", "numpy.ma", "llvmlite"}.intersection(new)
    ours = [name for name in new if name.startswith("gantline.")]
    assert all(name.startswith(("gantline.policies.", "gantline.traces.generators.", "gantline.engine.regimes")) for name in ours), ours


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_workers_are_forked_and_tell_how_they_ended() -> None:
    starter = Starter(several=True)
    first, second = starter.start(), starter.start()
    assert isinstance(first, ForkedProcess)
    assert isinstance(second, ForkedProcess)
    assert second.exchange("not a task") == ""
    assert (end(first), second.end()[1]) == (-signal.SIGKILL, 1)
    starter.close()


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
@pytest.mark.parametrize("has_read", [True, False])
def test_a_worker_whose_sweep_is_gone_ends_without_a_word(has_read: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """The kernel tells one who reads that the other end is closed, or, where that left something unread, that it was reset."""
    server = ForkServer([sys.executable, "-m", "gantline.lab.experiment.running.fork_server"], os.environ | {ALLOCATOR: QUIET})
    ours, channel = socket.socketpair()
    with channel, tempfile.TemporaryFile() as crash_report:
        worker = server.fork(b"worker", [channel.fileno(), crash_report.fileno()])
    select.select([ours], [], [])
    if has_read:
        assert ours.recv(16) == b"ready\n"
    ours.close()
    assert worker.wait() == (0 if has_read else 1)
    server.close()
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
@pytest.mark.parametrize("several", [True, False])
def test_a_worker_at_work_ends_soon_after_its_sweep_was_killed(several: bool, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, time\nfrom gantline import Policy\nclass Slow(Policy):\n    def decide(self, snapshot):\n"
        "        print(os.getpid(), flush=True)\n        time.sleep(3000)\n"
    )
    sweep = (
        "from gantline.lab.experiment.running.processes import Starter; from gantline.lab.experiment.setting import Setting\n"
        "from gantline.lab.experiment.trace_source import TraceSource\n"
        "from gantline.lab.experiment.running.tasks import Task; import json\n"
        "setting = Setting(TraceSource(generator='day', settings={'jobs': 2, 'gpus': 16}), '2x8', 'slow.py:Slow', budget=5000.0)\n"
        f"Starter(several={several}).start().exchange(json.dumps(Task(setting, 'a' * 64, '.').to_dict()))\n"
    )
    with subprocess.Popen([sys.executable, "-c", sweep], cwd=tmp_path, stderr=subprocess.PIPE) as running:
        worker = os.pidfd_open(int(running.stderr.readline()))  # what a policy prints
        running.kill()
    assert select.select([worker], [], [], 300)[0]
    os.close(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_nothing_is_forked_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Event()
    Thread(target=stop.wait, daemon=True).start()
    assert not is_alone()
    stop.set()
    monkeypatch.setattr(processes, "QUIET", "background_thread:true")  # the allocator of polars starts threads, unless it is told not to
    starter = Starter(several=True)
    worker = starter.start()
    assert isinstance(worker, FreshProcess)
    assert end(worker) == -signal.SIGKILL
    starter.close()
