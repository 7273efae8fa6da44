"""One service from start to stop: home, store, scheduler, address, and an orderly end."""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import uvicorn

import gantline
from gantline.core.errors import RefusedError, UnreachableError
from gantline.core.queues import Queue, queues_as_text
from gantline.engine.preemption_grace import LIVE_STOPS
from gantline.live.host import connections_within, raise_limit, too_few
from gantline.live.runners.registry import checked, completed, find_runner
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_context import RunnerContext
from gantline.live.scheduler.archive import Archive
from gantline.live.scheduler.retention import Keep, Retention
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.setup import Setup
from gantline.live.service.access import Access, JobTokens, digest
from gantline.live.service.app import build
from gantline.live.service.application import LOOPBACK
from gantline.live.service.connections import bounded
from gantline.live.service.context import Health, Service
from gantline.live.service.guard import log
from gantline.live.service.home import HERE, Home, Options, listen_on_unix_socket, owner
from gantline.live.service.jobs_folder import JobsFolder
from gantline.live.service.repair import repair_store
from gantline.live.store import Lock, SqlStore

_EVERYWHERE = ("0.0.0.0", "::")


def serve(options: Options, ready: Callable[[str], None] = lambda url: None, tell: Callable[[str], None] = lambda text: None) -> int:
    """Serve until asked to stop; returns the exit code. `tell` receives notes and warnings for people."""
    options.check()
    home = options.home
    home.make()
    home.check_room()
    with ExitStack() as held:
        lock = Lock(home.lock, "this home")
        held.callback(lock.release)
        return _serve(options, ready, tell, held)


def _serve(options: Options, ready: Callable[[str], None], tell: Callable[[str], None], held: ExitStack) -> int:
    home = options.home
    _log_to(home.log)
    where = options.store or str(home.store)
    store = SqlStore.open(where)
    held.callback(store.close)
    folder, archive = JobsFolder(home.jobs), Archive(home.archive)
    folder.check(store.identity, has_past=store.checkpoint() is not None)
    life = folder.new_life(store, archive.newest())
    if not folder.owner:
        folder.follow(store)()  # runners mark what they start outside with this identity, from the first start on
    listening = _listen(options.host, options.port, store.recall("port"))
    held.callback(listening.close)
    files = raise_limit()
    host, port = listening.getsockname()[:2]
    local_socket = listen_on_unix_socket(port) if options.host in (*HERE, *_EVERYWHERE) else None
    if local_socket is None:
        log.warning("no Unix socket beside port %d: clients of this machine use the port", port)
    else:
        held.callback(local_socket.close)
    url = f"{'https' if options.secured else 'http'}://{_called(options, host)}:{port}"
    runner = _runner(options, store, url, store.generation if life is None else life.generation)
    if short := too_few(files, runner.cluster.gpus):
        tell(f"warning: {short}")
    jobs = JobTokens.at(home.secret)
    known = queues_as_text({one.name: Queue(one.name, one.weight, one.quota, one.borrow) for one in store.queues()}, "queues")
    setup = Setup(unknown_queues="refuse", queues=known, **asdict(LIVE_STOPS))
    scheduler = Scheduler(
        store,
        runner,
        options.policy,
        settings=options.settings,
        setup=setup,
        anew=options.anew,
        job_env=_env_of(jobs, options.certificate, runner.shares_files),
        wall=options.wall,
        life=life,
    )
    access = Access(store, jobs)
    service = Service(scheduler, store, access, home.path, url, where if not options.store else options.store.partition("://")[0], archive)
    service.retention = Retention(scheduler, store, archive, _keep(options, store), service.forget)
    _own_token(home, store, access)
    with store.transaction() as write:
        write.remember("port", port)
    server = _server(options, service, connections_within(files))
    ending = _Ending(server, scheduler, tell, service.health)
    service.leave, service.leaving = ending.begin, lambda: server.should_exit
    scheduler.rehearse()
    _start(scheduler, store, archive)
    held.callback(folder.follow(store))
    for line in (*runner.notes(), *_out_of_reach(runner, options.host)):
        tell(line)
    service.retention.start()
    try:
        address = {"url": url, "pid": os.getpid(), "started": time.time(), "version": gantline.__version__}
        address |= {"certificate": str(options.certificate.absolute())} if options.certificate is not None else {}
        home.write_private(home.address, json.dumps(address, indent=2) + "\n")
        log.info("serving %s with policy %s", url, scheduler.view().policy)
        for line in scheduler.set_aside:
            tell(f"warning: {line}")
        ready(url)
        threading.Thread(target=ending.watch, name="gantline-watch", daemon=True).start()
        server.run(sockets=[listening] if local_socket is None else [listening, local_socket])
    finally:
        service.retention.close()
        ending.finish()
        service.asker.close()
        service.prompt.close()
        held.close()
        log.info("ended")
        home.address.unlink(missing_ok=True)  # last of all: a process that waits for this may start another service
    return 0 if ending.failure is None else 70


def _start(scheduler: Scheduler, store: SqlStore, archive: Archive) -> None:
    """Start it; where that fails because of what is in the store, say so."""
    try:
        scheduler.start()
    except Exception as error:
        beyond = [one for one in repair_store(store, archive=archive, dry_run=True) if not one.done]
        if not beyond:
            raise
        what = f"the service cannot start from it: {beyond[0].where}: {beyond[0].what}"
        raise RefusedError(
            what, where="store", fix="gantline repair lists all of it; go back to a backup: gantline restore FILE"
        ) from error


def _runner(options: Options, store: SqlStore, url: str, generation: str) -> Runner:
    """The runner of the devices declared, now or at an earlier start, else of those found; the scheduler sees changes."""
    declared, before = options.devices or store.recall("devices"), store.recall("executor")
    executor = options.executor or before or "local"
    if before not in (None, executor):
        what = f"the jobs of this home are run by executor '{before}', and '{executor}' would not find them"
        raise RefusedError(what, where="--executor", fix="leave it out, or choose another --home")
    kind = find_runner(executor)
    if options.preload and not kind.preloads:
        raise RefusedError(f"executor '{executor}' starts every job by itself", where="--preload", fix="leave it out")
    own = completed(checked(options.runner, kind.options, executor), store.recall("runner", {}), kind.options)
    accounts = lambda: store.recall("accounts", {})  # noqa: E731
    apart = options.apart(store.recall("run_as", ""))
    runner = kind.open(RunnerContext(options.home.path, declared, own, url, apart, generation, owner(), options.preload, accounts))
    if runner.accounts.apart:
        options.home.check_entered()
    with store.transaction() as write:
        if os.getuid() == 0:
            write.remember("run_as", "users" if apart else "service")
        write.remember("executor", executor)
        write.remember("runner", own)
        if declared is not None:
            write.remember("devices", declared)
    return runner


def _keep(options: Options, store: SqlStore) -> Keep:
    """How long jobs that have ended stay in memory: as given now, or else at an earlier start."""
    keep = {**store.recall("keep", {}), **options.keep}
    with store.transaction() as write:
        write.remember("keep", keep)
    return Keep.from_json(keep)


def _env_of(jobs: JobTokens, certificate: Path | None, shares_files: bool) -> Callable[[str], dict[str, str]]:
    """What a job needs to report: its token, and the certificate where one is used, as a file or as the text of one."""
    trusted: dict[str, str] = {}
    if certificate is not None:
        trusted["GANTLINE_CA"] = str(certificate.absolute()) if shares_files else certificate.read_text(encoding="ascii")
    return lambda job: {"GANTLINE_JOB_TOKEN": jobs.token(job), **trusted}


def _out_of_reach(runner: Runner, host: str) -> list[str]:
    """What the operator is told where jobs on other machines cannot report to this service."""
    if runner.shares_files or host not in LOOPBACK or len(runner.cluster.nodes) < 2:
        return []
    return [f"warning: jobs on other machines cannot reach {host}: they run, and report no progress; give --host, --name and a certificate"]


def _called(options: Options, host: str) -> str:
    if options.names:
        return options.names[0]
    if host in _EVERYWHERE:
        return socket.gethostname().lower()
    return f"[{host}]" if ":" in host else host


def _server(options: Options, service: Service, connections: int) -> uvicorn.Server:
    called = {*LOOPBACK, options.host.lower(), *(name.lower() for name in options.names)}
    here = {socket.gethostname().lower()} if options.host in _EVERYWHERE else set()
    app = build(service, called | here, _results(options, service.store))
    config = uvicorn.Config(
        app, http=bounded(connections // 2), log_config=None, access_log=False, server_header=False, lifespan="off",
        timeout_keep_alive=20, timeout_graceful_shutdown=5,
        ssl_certfile=str(options.certificate) if options.certificate else None, ssl_keyfile=str(options.key) if options.key else None,
    )  # fmt: skip
    return uvicorn.Server(config)


def _results(options: Options, store: SqlStore) -> Path | None:
    """The folder of finished simulations to show: as given now, or else at an earlier start."""
    if options.results is not None:
        with store.transaction() as write:
            write.remember("results", str(options.results.absolute()))
    known = store.recall("results")
    return Path(known) if known else None


class _Ending:
    """The orderly end: jobs first, if they are to be stopped, while they can still report what they have saved."""

    def __init__(self, server: uvicorn.Server, scheduler: Scheduler, tell: Callable[[str], None], health: Health) -> None:
        self.server, self.scheduler, self.tell, self.health = server, scheduler, tell, health
        self.failure: BaseException | None = None
        self._once = threading.Lock()
        self._stopped = self._leaving = False

    def begin(self, drain: bool) -> None:
        with self._once:
            if self._leaving:
                return
            self._leaving = True
        threading.Thread(target=self._leave, args=(drain,), name="gantline-leave", daemon=True).start()

    def _leave(self, drain: bool) -> None:
        try:
            self._stop(drain)
        finally:
            self.server.should_exit = True

    def _stop(self, drain: bool) -> None:
        with self._once:
            if not self._stopped:
                self._stopped = True
                self.scheduler.stop(drain)

    def watch(self) -> None:
        """End the service when the scheduler's or the runner's thread has ended, so that it cannot look healthy."""
        while not self._leaving and not self._stopped:
            if not self.scheduler.alive:
                self.failure = self.scheduler.failure or self.scheduler.runner.failure or RuntimeError("it ended without a reason")
                thread = "runner" if self.scheduler.failure is None and self.scheduler.runner.failure is not None else "scheduler"
                log.critical("the %s's thread has ended: %s", thread, self.failure, exc_info=self.failure)
                why = f"{type(self.failure).__name__}: {self.failure}"
                self.tell(f"error: the {thread}'s thread has ended, and the service with it; jobs go on, see service.log: {why}")
                self.server.should_exit = True
                return
            try:
                self.health.look()
            except UnreachableError:  # the scheduler has just ended
                continue
            time.sleep(0.5)

    def finish(self) -> None:
        """Whatever ended the server, the scheduler ends too; its jobs go on unless they were drained."""
        self._leaving = True
        self._stop(False)


def _listen(host: str, port: int | None, before: int | None) -> socket.socket:
    """A listening socket: at the requested port, else at the previous one, so that running jobs find it; else at any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tried = [port] if port is not None else [*([before] if before else []), 0]
    for place, one in enumerate(tried):
        # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named; otherwise each waits 40 ms for the
        # acknowledgement of its head
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, one))
            found.listen(256)
            return found
        except OSError as error:
            found.close()
            if place == len(tried) - 1:
                reason = (error.strerror or str(error)).lower()
                raise RefusedError(
                    f"cannot listen at {host}:{one}: {reason}", where="--port", fix="choose another port, or leave it out"
                ) from None
    raise AssertionError("a port was tried")


def _own_token(home: Home, store: SqlStore, access: Access) -> None:
    """The owner's token, made at the first start; a lost or changed file is made again."""
    try:
        known = home.token.read_text(encoding="utf-8").strip()
    except OSError:
        known = ""
    found = store.token(digest(known)) if known else None
    if found is not None and found.user == owner():
        return
    _, token = access.create(owner(), "admin")
    home.write_private(home.token, token + "\n")


def _log_to(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=16 << 20, backupCount=3, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger("uvicorn.access").disabled = True  # it would log whole URLs; the guard's lines are enough
    for name in ("gantline", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
