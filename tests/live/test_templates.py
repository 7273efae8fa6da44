"""Jobs that are forked from a process which has imported what they need, and cannot tell that from a start."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from tests.live.specs import Spec, ended, must_succeed, until

from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.isolation import LocalAccounts
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore

HEAVY = "import os\nPID = os.getpid()\n"
FORKED = "import heavy, os; print('forked' if heavy.PID != os.getpid() else 'started')"
#: all that a program can see of how it was started
SEES = """
import os, signal, sys, threading
print(__name__, globals().get('__file__'), sys.argv, os.getcwd() == os.environ['GANTLINE_FOLDER'])
print([path for path in sys.path if not path.endswith('.zip')], sorted(sys.modules['__main__'].__dict__.keys() & {'__builtins__', 'os'}))
print({name: value for name, value in os.environ.items() if not name.startswith(('GANTLINE', 'MASTER', '_'))})
print([signal.getsignal(n) in (signal.SIG_DFL, signal.default_int_handler) for n in (2, 15, 17, 1)], signal.pthread_sigmask(0, ()))
print(os.getpgid(0) == os.getpid(), sorted(os.sched_getaffinity(0)), {'0', '1', '2'} <= set(os.listdir('/proc/self/fd')), os.umask(0o22))
print(threading.active_count(), repr(sys.stdin.read()), 'ü')
threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()  # after what the main thread says
def fails(): raise ValueError('at the end')
fails()
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a heavy module, where jobs find it."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "heavy.py").write_text(HEAVY)
    (folder / "sees.py").write_text(SEES)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def python(*words: str, **more: object) -> Spec:
    return Spec(Launch((sys.executable, *words), **more))  # type: ignore[arg-type]


def warm(home: Path, *names: str) -> Scheduler:
    runner = LocalRunner(home, "cpu:2", preload=names)
    scheduler = Scheduler(MemoryStore(), runner, "fifo")
    scheduler.start()
    return scheduler


def said(home: Path, job: str) -> str:
    return "".join(log.read_text() for log in (home / "jobs" / job).glob("*/log"))


def test_a_forked_program_sees_what_a_started_one_sees(tmp_path: Path, modules: Path) -> None:
    ways = [(str(modules / "sees.py"), "one", "-x"), ("-m", "sees", "two"), ("-c", SEES, "three")]
    found: dict[str, list[str]] = {}
    for kind in ("started", "forked"):
        scheduler = warm(tmp_path / kind, *(["heavy"] if kind == "forked" else []))
        jobs = [scheduler.submit(python(*words))[0] for words in (*ways, ("-c", FORKED))]
        assert ended(scheduler, *jobs) == ["failed", "failed", "failed", "succeeded"]
        assert [scheduler.view().jobs[job].exit_code for job in jobs[:3]] == [1, 1, 1]
        found[kind] = [said(tmp_path / kind, job).replace(f"/{kind}/", "/") for job in jobs]
        assert said(tmp_path / kind, jobs[3]) == f"{kind}\n"
        scheduler.stop()
    for one, other in zip(found["started"][:3], found["forked"][:3]):
        assert other.splitlines() == [line for line in one.splitlines() if "<frozen runpy>" not in line]
    assert "thread" in found["forked"][0]
    assert "ValueError: at the end" in found["forked"][0]


def test_ranks_of_a_gang_are_forked_and_stopped_like_others(tmp_path: Path) -> None:
    scheduler = warm(tmp_path / "home", "heavy")
    code = f"{FORKED}; print(os.environ['RANK'], flush=True); import time; time.sleep(100)"
    (gang,) = scheduler.submit(Spec(Launch((sys.executable, "-c", code), processes=0, grace=5.0), job={"gpus": 2}))
    until(lambda: sorted(line.split()[-1] for line in said(tmp_path / "home", gang).splitlines()) == ["0", "1", "forked", "forked"])
    until(lambda: scheduler.runner.known[gang].state.get("ranks"))
    pids = [one["pid"] for one in scheduler.runner.known[gang].state["ranks"]]
    scheduler.stop(drain=True)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize(
    "spec",
    [
        python("-X", "utf8", "-c", FORKED),
        python("-c", FORKED, env={"PYTHONHASHSEED": "1"}),
        Spec(Launch((f'{sys.executable} -c "{FORKED}"',), shell=True)),
    ],
    ids=["options", "variables", "shell"],
)
def test_what_a_fork_could_not_do_is_started(tmp_path: Path, spec: Spec) -> None:
    scheduler = warm(tmp_path / "home", "heavy")
    (job,) = scheduler.submit(spec)
    must_succeed(scheduler, job)
    assert said(tmp_path / "home", job) == "started\n"
    scheduler.stop()


def test_modules_that_cannot_be_imported_are_reported_and_jobs_start(tmp_path: Path) -> None:
    scheduler = warm(tmp_path / "home", "heavy", "not_there")
    assert "cannot import not_there: ModuleNotFoundError" in scheduler.runner.template.failure
    (job,) = scheduler.submit(python("-c", FORKED))
    must_succeed(scheduler, job)
    assert said(tmp_path / "home", job) == "started\n"
    scheduler.stop()


def test_a_template_that_is_killed_is_replaced_and_no_job_is_lost(tmp_path: Path) -> None:
    scheduler = warm(tmp_path / "home", "heavy")
    template = scheduler.runner.template
    os.kill(template.process.pid, signal.SIGKILL)
    (first,) = scheduler.submit(python("-c", FORKED))
    must_succeed(scheduler, first)
    assert said(tmp_path / "home", first) == "started\n"
    template.has_imported(60.0)
    (second,) = scheduler.submit(python("-c", FORKED))
    must_succeed(scheduler, second)
    assert said(tmp_path / "home", second) == "forked\n"
    scheduler.stop()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run jobs as other accounts")
def test_under_another_account_a_fork_ends_as_a_start_does() -> None:
    """Also where that account cannot reach the interpreter, as on many machines on which root has one of its own."""
    code = "import os; print(os.getuid(), os.getgroups(), os.getcwd()[-5:], len(open('/proc/self/environ').read()) > 0)"
    found = []
    for preload in ((), ("json",)):
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o711)
            runner = LocalRunner(Path(place), "cpu:1", preload=preload)
            runner.accounts = LocalAccounts(apart=True, owner="root")
            scheduler = Scheduler(MemoryStore(), runner, "fifo")
            scheduler.start()
            (job,) = scheduler.submit(python("-c", code), user="nobody")
            found.append((*ended(scheduler, job), scheduler.view().jobs[job].exit_code, said(Path(place), job)))
            scheduler.stop()
    started, forked = found
    assert forked[:2] == started[:2]
    assert started[0] == "failed" or forked == started
