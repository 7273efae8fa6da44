"""``gantline up``: a scheduler for this machine."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

from gantline.cli.arguments import Settings, finite_time_of, settings_of, time_of
from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, connect, need_libraries
from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UnreachableError, UsageError, near
from gantline.core.facts import Costs
from gantline.live.jobs.amounts import rule_of
from gantline.live.runners.registry import RUNNERS, checked, find_runner, options_of
from gantline.live.service.home import Home, Options
from gantline.traces.files.device_tables import read_prices
from gantline.traces.files.policies import from_anywhere, load_placement, load_policy

if TYPE_CHECKING:
    from gantline.live.service.client import Client


def _of_executors() -> str:
    """The options that executors of this package have of their own."""
    lines = [f"  --{option.name}  {option.help} ({name})" for name in RUNNERS.general for option in options_of(name)]
    return "\n\n".join(["", "Options of executors:", *lines]) if lines else ""


up_app = App(
    name="up",
    help_epilogue="""Examples:

  gantline up --devices cpu:4 --detach
  gantline up --policy tiresias --home /srv/gantline --store postgresql://gantline@db/gantline

Everything is kept in one folder, with an address and a token for its owner alone. 'gantline down' ends it; a service that was killed
goes on where it was when it is started again, and adopts the jobs that still run."""
    + _of_executors(),
)
_PATIENCE = 120.0  # seconds for a service to answer


@up_app.default
def up(
    *,
    home: HomeOption = None,
    devices: str | None = None,
    executor: str | None = None,
    policy: str | None = None,
    set_: Settings = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    name: list[str] | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    store: str = "",
    round: str | None = None,
    quantum: str | None = None,
    placement: str | None = None,
    costs: str | None = None,
    min_run: str | None = None,
    grace: str | None = None,
    turn: str | None = None,
    victims: Literal["order", "least-lost"] | None = None,
    budget: str | None = None,
    prices: str | None = None,
    unknown_queues: Literal["refuse", "create"] | None = None,
    end_by: str | None = None,
    profiles: Path | None = None,
    keep: str | None = None,
    keep_jobs: int | None = None,
    run_as: Literal["users", "service"] | None = None,
    preload: str | None = None,
    results: Path | None = None,
    detach: bool = False,
    **of_executor: str,
) -> int:
    """Start the scheduler of this machine: it takes jobs over HTTP and runs them on its devices.

    Args:
        devices: What there is: h200:1,cpu:16; in slices: h200/8. By default as last time, else what NVML finds and a
            slot per core.
        executor: What runs the jobs: local, or what an installed package brings. By default as last time, else local.
        policy: The policy that decides: a name from 'gantline policy list'. By default as last time, else fifo.
        port: Where to listen. By default where it was last time, else anywhere.
        host: The address to listen at; others than this machine's own need TLS.
        name: A name by which clients call this host; may be repeated.
        tls_cert: A certificate (PEM).
        tls_key: Its key (PEM).
        store: Another database: postgresql://USER@HOST/NAME. By default a file in the home.
        round: Seconds between decisions; 0: on events. By default as last time, as are the next seven.
        quantum: On events: how often an order that moves by itself is looked at (60).
        placement: Which devices: first-free, consolidated[:preferred], ... (first-free).
        costs: What starts, stops and moves are thought to cost, for policies: start=30,resume=60.
        min_run: Seconds for which a job that was started is not stopped for others (60).
        grace: How long at most one that starts, or can save and has not yet, is not stopped for others (120).
        turn: How often an order that moves by itself (LAS, fair share) may stop jobs for others; 0: always (60).
        victims: Which jobs are stopped for one that ranks higher: the lowest in the order, or those that lose least
            (order).
        budget: Seconds that a decision may take: a later one is not waited for, and the last plan stands. 0: no bound
            (0).
        prices: Money per device-hour, for policies: v100=0.74,k80=0.135, or a file.
        unknown_queues: What becomes of a job that names a queue which does not exist (refuse).
        end_by: End jobs that say nothing else by their loss: never, plateau:BOUND[%][@REPORTS], target:LOSS (never).
        profiles: A bundle of profiles that 'gantline profile' wrote.
        keep: How long jobs that have ended stay at hand, with their output, until they are archived: 30d, or forever
            (forever).
        keep_jobs: How many of them stay at hand, whatever their age; output of the others is kept (10000).
        run_as: Under which accounts jobs run: the service's, or their users', which needs root. By default as last
            time, else users.
        preload: Modules that are imported once, for Python jobs that are forked instead of started: torch,numpy.
        results: A folder of finished simulations that the dashboard shows, too.
        detach: Return when the service answers.
        of_executor: Options of the executor's own, see below. By default as last time.
    """
    need_libraries()
    where = store or os.environ.get("GANTLINE_STORE", "")
    anew = anew_of(round, quantum, placement, costs, min_run, budget, prices, profiles)
    anew |= {"grace": finite_time_of(grace, "--grace")} if grace is not None else {}
    anew |= {"turn": finite_time_of(turn, "--turn")} if turn is not None else {}
    anew |= {"victims": victims} if victims is not None else {}
    anew |= {"unknown_queues": unknown_queues} if unknown_queues is not None else {}
    if end_by is not None:
        anew["end_by"] = str(rule_of(end_by))
    options = Options(
        Home.find(home), devices, policy, settings_of(set_), host, port, where, tuple(name or ()), tls_cert, tls_key, run_as or "", anew,
        kept_of(keep, keep_jobs), executor, results, modules_of(preload), of_executor,
    )  # fmt: skip
    options.check()
    for warning in check_executor(executor, devices, of_executor):
        say(f"warning: {warning}")
    if policy is not None:
        load_policy(policy, settings_of(set_))
    if detach:
        return _detach(options)
    from gantline.live.service.serve import serve

    return serve(options, lambda url: _announce(url, options.home.path), say)


def check_executor(executor: str | None, devices: str | None, given: Mapping[str, str]) -> Sequence[str]:
    """Refuse an executor, devices and options that cannot be, as far as that is known before the home is read; returns warnings."""
    known = {option.name for name in RUNNERS.entries() for option in options_of(name)}
    for name in given:
        if name not in known:
            mine = [word for parameter in up_app.assemble_argument_collection() for word in parameter.names]
            raise UsageError("there is no such option", where=f"--{name}", fix=near(f"--{name}", [*mine, *(f"--{one}" for one in known)]))
    if executor is None and (devices is None or given):
        return ()
    kind = find_runner(executor or "local")
    return kind.check(devices, checked(given, kind.options, executor or "local"))


def _announce(url: str, home: Path) -> None:
    print(url, flush=True)
    say(f"note: serving from {home}; Ctrl-C ends the service and leaves its jobs running, 'gantline down' ends both")


def _detach(options: Options) -> int:
    """Start the same in the background, and wait until it answers or has said why it cannot."""
    from gantline.live.service.client import Client

    home = options.home
    home.make()
    home.check_room()
    before = home.announced()  # of a killed service, or of one that still runs, which the new one reports
    with open(home.path / "start.log", "w", encoding="utf-8", opener=_private) as out:
        environment = {**os.environ, "GANTLINE_STORE": options.store}  # which may hold a password, and a command line is visible to all
        command = [sys.executable, "-m", "gantline", *_arguments(options)]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=environment)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = home.announced()
        if found is not None and found != before:  # by the child, or by its own child, where the policy is a user's file
            try:
                with Client(home=home.path, timeout=5.0) as client:
                    client.status()
            except GantlineError:
                time.sleep(0.05)
                continue
            for line in (home.path / "start.log").read_text(encoding="utf-8").splitlines():
                if notice := re.search(r"(?:warning|note): (?!serving from).*", line):
                    say(notice[0])
            print(found["url"])
            say(f"note: process {found['pid']} serves from {home.path}")
            return 0
        code = child.poll()
        if code is not None:
            said = (home.path / "start.log").read_text(encoding="utf-8").strip().splitlines()
            print(said[-1] if said else f"gantline: error: the service ended with code {code}", file=sys.stderr)
            return code or 1
        time.sleep(0.05)
    raise RefusedError(
        f"the service has not answered within {_PATIENCE:g} s", where=str(home.path), fix="see service.log and start.log there"
    )


def anew_of(
    round: str | None, quantum: str | None, placement: str | None, costs: str | None, min_run: str | None, budget: str | None,
    prices: str | None, profiles: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """The rules that are given, each checked."""
    found: dict[str, Any] = {"round": finite_time_of(round, "--round"), "min_run": finite_time_of(min_run, "--min-run")}
    found |= {"quantum": finite_time_of(quantum, "--quantum", above=True), "placement": placement, "costs": costs}
    found |= {"budget": finite_time_of(budget, "--budget")}
    if placement is not None:
        load_placement(placement)
        found["placement"] = from_anywhere(placement)
    Costs.parse(costs or "")
    if prices is not None:
        found["prices"] = ",".join(f"{kind}={price!r}" for kind, price in read_prices(prices or None).items())
    if profiles is not None:
        if not profiles.is_file():
            raise NotFoundError("no such file", where=str(profiles), fix="write one with gantline profile run")
        found["profiles"] = str(profiles.absolute())
    return {key: value for key, value in found.items() if value is not None}


def kept_of(keep: str | None, jobs: int | None) -> dict[str, Any]:
    """The options on how long jobs stay in the store, in the form that `Keep` reads."""
    age = math.inf if keep == "forever" else time_of(keep, "--keep", above=True)
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} is too few", where="--keep-jobs", fix="give at least 1")
    found: dict[str, Any] = {} if age is None else {"age": None if math.isinf(age) else age}
    return found | ({} if jobs is None else {"jobs": jobs})


def modules_of(preload: str | None) -> tuple[str, ...]:
    """The names of modules in a list with commas."""
    names = tuple(name.strip() for name in (preload or "").split(",")) if preload is not None else ()
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise UsageError(f"'{name}' is not the name of a module", where="--preload", fix="write for example torch,numpy")
    return names


def _arguments(options: Options) -> list[str]:
    """The command line that means these options."""
    fields = {
        "--home": options.home.path,
        "--devices": options.devices,
        "--executor": options.executor,
        "--policy": options.policy,
        "--port": options.port,
        "--host": options.host,
    }
    fields |= {"--tls-cert": options.certificate, "--tls-key": options.key, "--results": options.results}
    found = ["up", *(f"{name}={value}" for name, value in fields.items() if value is not None)]
    found += [f"--name={name}" for name in options.names]
    found += [f"--preload={','.join(options.preload)}"] if options.preload else []
    found += [f"--run-as={options.run_as}"] if options.run_as else []
    found += [f"--{name.replace('_', '-')}={value}" for name, value in options.anew.items()]
    found += [f"--{name}={value}" for name, value in options.runner.items()]
    kept = {"--keep": "forever" if (age := options.keep.get("age", 0)) is None else age or None, "--keep-jobs": options.keep.get("jobs")}
    found += [f"{name}={value}" for name, value in kept.items() if value is not None]
    return [*found, *(word for key, value in options.settings.items() for word in ("--set", f"{key}={value}"))]


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


# ``gantline down``: the end of a service.

down_app = App(name="down")


@down_app.default
def down(
    *,
    home: HomeOption = None,
    keep_jobs: bool = False,
    timeout: str = "5m",
) -> int:
    """End the service: its jobs are stopped and saved first, and go on when it is started again.

    Args:
        keep_jobs: Leave the jobs running; the next service adopts them.
        timeout: How long to wait until it is gone.
    """
    limit = time_of(timeout, "--timeout") or 0.0
    end = time.monotonic() + limit
    with connect(home) as client:
        answer = client.shutdown(drain=not keep_jobs)
        if answer.get("why"):
            say(f"warning: the jobs are left running, because their stop cannot be recorded: {answer['why']}")
        while time.monotonic() < end:
            if not _answers(client) and not _announced(home, answer["pid"]):
                say(f"note: process {answer['pid']} has ended" + ("" if answer["drain"] else "; its jobs go on"))
                return 0
            time.sleep(0.1)
    say(f"error: the service still runs after {timeout}")
    return 1


def _answers(client: Client) -> bool:
    try:
        client.status()
    except UnreachableError:
        return False
    return True


def _announced(home: Path | None, pid: int) -> bool:
    """Whether the process still has its address in the home; it removes that when it has released everything."""
    found = Home.find(home).announced()
    return found is not None and found.get("pid") == pid
