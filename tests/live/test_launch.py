"""How a job is run survives the store."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import Spec, ended, must_succeed, until

from gantline.cli.live.submit import EnvironmentOptions, _environment
from gantline.core.errors import UsageError
from gantline.core.grant import Grant
from gantline.core.plan import Assignment
from gantline.engine.executor import Order, Verb
from gantline.live.jobs.launch import PER_NODE, Launch
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.job_environment import free_port, gang_ranks, job_environment
from gantline.live.runners.kubernetes.access import ClusterAccess
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.runners.kubernetes.pods_and_nodes import PodTerms
from gantline.live.runners.kubernetes.runner import KubernetesRunner
from gantline.live.runners.local.isolation import LocalAccounts
from gantline.live.runners.local.orders import rank_environments
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner_context import Task
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import Entry, MemoryStore


def test_what_is_written_is_read_back() -> None:
    launch = Launch(
        ("sh", "-c", "true"), env={"A": "1"}, after=(("7", "ok"),), time_limit=60.0, changes=("devices",), array="3", array_index=0
    )
    assert Launch.from_json(json.loads(json.dumps(launch.to_json()))) == launch


def test_only_what_differs_from_the_default_is_written() -> None:
    assert Launch(("true",)).to_json() == {"command": ["true"]}


def test_news_of_a_job_add_up() -> None:
    store = MemoryStore()
    store.append(
        [Entry("job", {"id": "1", "user": "ann"}), Entry("journal", {"input": "submit"}), Entry("job", {"id": "1", "state": "running"})]
    )
    assert list(store.jobs()) == [{"id": "1", "user": "ann", "state": "running"}]
    assert list(store.journal()) == [(1, {"input": "submit"})]


# Runtime environments in specifications: what can be written, and what cannot.


def written(environment: Any, **more: Any) -> JobSpec:
    return spec_of({"run": ["python", "train.py"], "runtime_env": environment, **more})


def test_an_environment_is_the_same_after_it_was_stored() -> None:
    spec = written({"working_dir": "/code", "excludes": ["data"], "env_vars": {"LAYERS": 3}, "pip": ["einops"]})
    assert spec.launch().runtime_env == {"working_dir": "/code", "excludes": ["data"], "env_vars": {"LAYERS": "3"}, "pip": ["einops"]}
    assert spec_of(spec.to_json()) == spec
    assert Launch.from_json(spec.launch().to_json()) == spec.launch()


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"working_dirr": "/code"}, "did you mean 'working_dir'"),
        ({"working_dir": "code"}, "neither an absolute path nor a URI"),
        ({"excludes": ["data"]}, "no folder to leave something out of"),
        ({"working_dir": "s3://bucket/code.zip", "excludes": ["data"]}, "no folder to leave something out of"),
        ({"pip": ["einops"], "conda": "base"}, "more than one of pip, uv and conda"),
        ({"pip": "requirements.txt"}, "not an absolute path"),
        ({"py_modules": ["/code/module"]}, "is not a URI"),
        ({"env_vars": {"GANTLINE_URL": "x"}}, "set by the runner"),
        ({"env_vars": {"CUDA_VISIBLE_DEVICES": "0"}}, "set by the runner"),
        ({"config": {"setup_timeout_seconds": 0}}, "setup_timeout_seconds"),
        (["einops"], "is not a mapping"),
    ],
)
def test_what_would_not_act_is_refused(environment: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        written(environment)


def test_a_job_runs_in_one_folder() -> None:
    with pytest.raises(UsageError, match="both say where it runs"):
        written({"working_dir": "/code"}, workdir="/elsewhere")


def test_options_name_folders_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.yaml").write_text("working_dir: code\npip: [einops]\n")
    assert _environment(EnvironmentOptions(runtime_env="env.yaml")) == {"working_dir": f"{tmp_path}/code", "pip": ["einops"]}
    assert _environment(EnvironmentOptions(None, ".", '{"uv": ["einops"]}')) == {"working_dir": str(tmp_path), "uv": ["einops"]}
    assert _environment(EnvironmentOptions(None, "s3://bucket/code.zip")) == {"working_dir": "s3://bucket/code.zip"}
    (tmp_path / "env.yaml").write_text("[einops]")
    with pytest.raises(UsageError, match="is not a mapping"):
        _environment(EnvironmentOptions(runtime_env="env.yaml"))


def test_pods_have_their_environment_by_their_image(tmp_path: Path) -> None:
    runner = KubernetesRunner(
        tmp_path, ApiClient(ClusterAccess("http://127.0.0.1:9")), PodTerms("jobs", "home", "", image="pytorch"), True, 300.0
    )
    assert "by their image" in runner.refusal(Launch(("true",), runtime_env={"env_vars": {"MODE": "fast"}}))
    assert not runner.refusal(Launch(("true",)))


# What ranks find in their environment: torchrun's names, true for gangs over several nodes, and a port that no other gang has.


def gang(processes: int, **places: int) -> list[tuple[str, ...]]:
    """Node, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE and NODE_RANK of each rank."""
    found = gang_ranks(Launch(("train",), processes=processes), {node: range(count) for node, count in places.items()}, "10.0.0.7", 4000)
    assert {(rank.env["MASTER_ADDR"], rank.env["MASTER_PORT"]) for rank in found} == {("10.0.0.7", "4000")}
    assert {(rank.env["WORLD_SIZE"], rank.env["NNODES"]) for rank in found} == {(str(len(found)), str(len(places)))}
    assert all(rank.env["GPUS_PER_NODE"] == str(max(places[rank.node], 1)) for rank in found)
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")
    return [(rank.node, *(rank.env[name] for name in names)) for rank in found]


def test_a_rank_per_device_over_two_nodes_of_different_sizes() -> None:
    assert gang(0, b=1, a=2) == [("b", "0", "0", "1", "0"), ("a", "1", "0", "2", "1"), ("a", "2", "1", "2", "1")]


def test_a_process_on_each_node_is_a_rank_of_its_own() -> None:
    assert gang(PER_NODE, a=4, b=4) == [("a", "0", "0", "1", "0"), ("b", "1", "0", "1", "1")]


def test_more_processes_than_devices_are_divided_by_devices() -> None:
    assert [rank[0] for rank in gang(6, a=2, b=1)] == ["a", "a", "a", "a", "b", "b"]


@pytest.mark.parametrize("places", [{"a": 2}, {"a": 0}])
def test_one_process_is_on_one_node(places: dict[str, int]) -> None:
    assert gang(1, **places) == [("a", "0", "0", "1", "0")]


def test_what_all_ranks_share_says_which_job_where_and_how_it_reports() -> None:
    launch = Launch(("train",), env={"CHECKPOINT_PATH": "/keep/$JOB_ID"}, array_index=3)
    order = Order(Verb.START, 0, 5, (0, 4), grant=Grant((Assignment(0, batch=64),)))
    found = job_environment(Task("17_3", launch, 2, env={"GANTLINE_JOB_TOKEN": "t"}), order, ["a:0", "b:1"], "http://head:80", "/jobs/17_3")
    assert found == {
        "GANTLINE_URL": "http://head:80", "GANTLINE_JOB_ID": "17_3", "JOB_ID": "17_3", "GANTLINE_CHECKPOINT": "/jobs/17_3",
        "GANTLINE_EPOCH": "5", "GANTLINE_DEVICES": "a:0,b:1", "GANTLINE_GPUS": "2", "GANTLINE_BATCH": "64", "RESTART_COUNT": "2",
        "CHECKPOINT_PATH": "/keep/17_3", "ARRAY_INDEX": "3", "GANTLINE_JOB_TOKEN": "t",
    }  # fmt: skip


def test_every_gang_has_a_port_of_its_own_a_single_rank_too() -> None:
    gangs = [rank_environments(Launch((), processes=0), count) for count in (1, 1, 1, 2, 4) * 20]
    ports = [{rank["MASTER_PORT"] for rank in gang} for gang in gangs]
    assert all(len(of_gang) == 1 for of_gang in ports)
    assert len(set.union(*ports)) == len(gangs)
    assert free_port() not in {int(port) for of_gang in ports for port in of_gang}


# Jobs that are forked from a process which has imported what they need, and cannot tell that from a start.

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
