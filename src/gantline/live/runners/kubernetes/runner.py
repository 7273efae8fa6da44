"""A Kubernetes cluster as a runner: a thread carries out orders (`execution`), watches keep what is known current (`cluster_cache`)."""

from __future__ import annotations

import logging
import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, UsageError
from gantline.engine.executor import Can, Order
from gantline.live.jobs.launch import Launch
from gantline.live.runners.kubernetes.access import Object, find_access, path_of
from gantline.live.runners.kubernetes.client import ApiClient, Follower
from gantline.live.runners.kubernetes.cluster_cache import ClusterCache
from gantline.live.runners.kubernetes.execution import PodExecution
from gantline.live.runners.kubernetes.gang_lifecycle import PodGang
from gantline.live.runners.kubernetes.lease_and_rights import Leadership, LostLeaseError, check_rights
from gantline.live.runners.kubernetes.logs import LogCopies
from gantline.live.runners.kubernetes.pods_and_nodes import PodTerms, identity_of, read_node, read_pod
from gantline.live.runners.kubernetes.workload_controller import WorkloadController, follow_workloads, kinds_served
from gantline.live.runners.kubernetes.workloads import Workload, WorkloadKind
from gantline.live.runners.kubernetes.write_queue import WriteQueue
from gantline.live.runners.local.output import KeptJobs, KeptOutput
from gantline.live.runners.registry import OPTIONS
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_context import Contact, RunnerContext, RunnerOption
from gantline.live.runners.runner_events import KeptIncarnation, Present

_LOG = logging.getLogger("gantline.live")
_OLDEST = 20  # of version 1: the first whose server-side apply is tried here
_LOOK = 1.0  # seconds between two looks at gangs that start or end
_CLOCKS = 5.0  # seconds by which clocks may differ before it is mentioned


class KubernetesRunner(Runner):
    """A runner for one namespace of a cluster. `attach` before the first order."""

    options: ClassVar[Sequence[RunnerOption]] = OPTIONS["kubernetes"]

    def __init__(
        self,
        home: Path,
        client: ApiClient,
        terms: PodTerms,
        slots: bool,
        timeout: float,
        minor: int = _OLDEST,
        kinds: Sequence[WorkloadKind] = (),
    ) -> None:
        self.home, self.client, self.terms, self.slots, self.timeout = Path(home).absolute(), client, terms, slots, timeout
        self.minor, self.generation = minor, ""
        self.cache, self.kept = ClusterCache(terms.namespace), KeptJobs(self.home)
        self.logs = LogCopies(client, terms.namespace)
        self.lease = Leadership(client, terms.namespace, terms.home, self._lost_lease)
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._work: PodExecution | None = None
        self._controller: WorkloadController | None = None
        self._adopted: list[PodGang] = []
        self._thread: threading.Thread | None = None
        nodes = Follower(client, path_of("nodes"), self._see_node, self._only_nodes)
        workloads = follow_workloads(
            client, terms.namespace, kinds, minor, self._see_workload, self._only_workloads
        )  # before the pods of theirs
        self.followers = (nodes, *workloads, Follower(client, path_of("pods"), self._see_pod, self._only_pods))

    @classmethod
    def check(cls, devices: str | None, options: Mapping[str, str]) -> Sequence[str]:
        if devices not in (None, "cpu"):
            fix = "leave it out, or write cpu: every CPU of every node is a slot"
            raise UsageError("devices are those that the cluster's nodes have", where="--devices", fix=fix)
        _seconds(options)
        return ()

    @classmethod
    def open(cls, context: RunnerContext) -> Self:
        cls.check(context.devices, context.options)
        options = context.options
        access = find_access(options.get("kubeconfig", ""), options.get("context", ""), options.get("namespace", ""))
        client = ApiClient(access)
        minor = check_version(client)
        check_rights(client, access.namespace)
        terms = PodTerms(
            access.namespace, _identity(context.home), context.url, options.get("image", ""), options.get("checkpoints", "").rstrip("/")
        )
        runner = cls(context.home, client, terms, context.devices == "cpu", _seconds(options), minor, kinds_served(client))
        runner.generation = context.generation
        runner.lease.acquire()
        runner.lease.start()
        for follower in runner.followers:
            follower.first()
        runner._refuse_strangers()
        return runner

    def notes(self) -> Sequence[str]:
        found = []
        if not self.terms.checkpoints:
            found.append("note: jobs have no place for saved work: --checkpoints names a volume that all nodes see")
        if abs(self.client.skew) > _CLOCKS:
            found.append(f"warning: the API server's clock differs from this one by {self.client.skew:.0f} s; times are by this one")
        if not self.cluster.nodes:
            found.append("warning: no node has devices: without GPUs, --devices cpu makes every CPU a slot")
        return found

    # --- what it can ----------------------------------------------------------------------------------------------------
    @property
    def abilities(self) -> frozenset[Can]:
        """Pods cannot be changed; only CPUs can be requested in parts."""
        return frozenset({Can.COLLOCATE}) if self.slots else frozenset()

    def can(self, row: int) -> frozenset[Can]:
        return self.abilities

    def refusal(self, launch: Launch) -> str:
        if not launch.image and not self.terms.image:
            return "it names no image, and this service has none for such jobs (--image)"
        if launch.resumes and not self.terms.checkpoints:
            return "it goes on from what it has saved, and this service has no volume for that (--checkpoints)"
        bad = [one for one in launch.mounts if len(one.split(":")) not in (2, 3) or not one.split(":")[1].startswith("/")]
        if bad:
            return f"mount '{bad[0]}' is not CLAIM:/PATH[:ro] or /PATH:/PATH[:ro]"
        if launch.pids:
            return "it bounds its processes, which pods cannot"
        return "it asks for a runtime environment, which pods have by their image" if launch.runtime_env else ""

    @property
    def cluster(self) -> Cluster:
        return self.cache.cluster

    @property
    def drained(self) -> Mapping[str, str]:
        return self.cache.drained

    # --- beginning and end ----------------------------------------------------------------------------------------------
    def adopt(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
        folder = self.home / "jobs"
        newest: dict[str, int] = {}
        for job in sorted(one.name for one in folder.iterdir() if one.is_dir() and not is_over(one.name)) if folder.is_dir() else ():
            epochs = [int(one.name) for one in (folder / job).iterdir() if one.name.isdigit()]
            if epochs:
                newest[job] = max(epochs)
        found = [PodGang.read(job, epoch, folder / job / str(epoch)) for job, epoch in newest.items()]
        found = [gang for gang in found if gang.generation == self.generation or not gang.over]  # of another life only what still runs
        self._adopted = [gang for gang in found if gang.places or gang.over]  # a service may be killed before it has written the order
        return [self._present(gang) for gang in self._adopted]

    def _present(self, gang: PodGang) -> Present:
        starts = [pod.started for name in gang.names if (pod := self.cache.pods.get(name)) is not None and pod.started is not None]
        named = tuple(f"{node}:{place}" for node, places in gang.places.items() for place in places)
        since = max(starts) - self.client.skew if len(starts) == len(gang.names) and starts else None
        return Present(gang.job, gang.epoch, () if gang.over else named, since, gang.over)

    def attach(self, contact: Contact) -> None:
        writes = WriteQueue(self.client, self._inbox.put, lambda: self.lease.is_held)
        self._work = work = PodExecution(self.home, contact, self.client, self.cache, writes, self.logs, self.terms, self.timeout)
        work.slots, work.generation, self._controller = self.slots, self.generation, WorkloadController(work, self.minor)
        for node in self.cache.nodes.values():
            if node.node.gpus:
                work.saw_node(node.news)
        work.begin(self._adopted)
        self._controller.begin()
        work.flush()
        self._thread = threading.Thread(target=self._watched, name="gantline-runner", daemon=True)
        self._thread.start()
        for follower in self.followers:
            follower.start()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive() and self.failure is None

    def close(self) -> None:
        for follower in self.followers:
            follower.stop()
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
        if self._work is not None and self._controller is not None:
            self._controller.close()
            self._work.writes.close()
        self.lease.release()
        self.client.close()

    # --- orders and jobs ------------------------------------------------------------------------------------------------
    def send(self, order: Order, now: float) -> None:
        self._inbox.put(lambda: self._carry_out(order))

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        self._inbox.put(lambda: self._execution.fail(devices))

    def is_same_life(self, job: str, epoch: int) -> bool:
        gang = self._execution.gangs.get(job)
        return gang is not None and not gang.over and not gang.is_leaving and gang.epoch == epoch

    def switched(self, job: str, epoch: int) -> None:
        """Gangs do not change while they run."""

    def forget(self, jobs: Iterable[str]) -> None:
        names = list(jobs)

        def drop() -> None:
            for job in names:
                self._execution.gangs.pop(job, None)

        self._inbox.put(drop)

    def incarnations(self, job: str) -> Sequence[KeptIncarnation]:
        return self.kept.incarnations(job)

    def output(self, job: str, epoch: int) -> KeptOutput:
        gang = self._execution.live.get(job) if self._work is not None else None
        if gang is not None and gang.epoch == epoch and gang.is_running:
            most = self._execution.contact.task(gang.row).launch.log_bytes
            self.logs.of(job, epoch, gang.outputs, gang.folder / "log", most).wait_a_little()
        return self.kept.output(job, epoch)

    def jobs_kept(self) -> set[str]:
        return self.kept.jobs()

    def remove(self, job: str) -> None:
        self.kept.remove(job)

    # --- the thread -----------------------------------------------------------------------------------------------------
    @property
    def _execution(self) -> PodExecution:
        assert self._work is not None, "attach comes first"
        return self._work

    def _carry_out(self, order: Order) -> None:
        self._execution.carry_out(order)

    def _watched(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # the thread that watches this one reports it and ends the service
            self.failure = error

    def _loop(self) -> None:
        work = self._execution
        while True:
            try:
                item = self._inbox.get(timeout=_LOOK if work.live else 60.0)
            except queue.Empty:
                item = work.look
            if item is None:
                return
            try:
                item()
            except Exception:
                _LOG.exception("while carrying out an order or an event")
            work.flush()
            for follower in self.followers:
                if follower.failure is not None:
                    raise follower.failure

    def _lost_lease(self, error: LostLeaseError) -> None:
        self.failure = error
        self._inbox.put(None)

    # --- what is seen ---------------------------------------------------------------------------------------------------
    def _see_node(self, value: Object, is_gone: bool) -> None:
        node = read_node(value, self.slots)
        if self._work is None:
            self.cache.see_node(node)
        elif is_gone:
            self._inbox.put(lambda: self._execution.saw_node(self.cache.lose_node(node.name)))
        else:
            self._inbox.put(lambda: self._execution.saw_node(self.cache.see_node(node)))

    def _see_pod(self, value: Object, is_gone: bool) -> None:
        pod = read_pod(value)
        if self._work is None:
            self.cache.see_pod(pod, is_gone)
        else:
            self._inbox.put(lambda: self._execution.saw_pod(pod, is_gone))

    def _see_workload(self, workload: Workload, is_gone: bool) -> None:
        if self._controller is None:
            self.cache.see_workload(workload)
        else:
            self._inbox.put(partial(self._controller.saw, workload, is_gone))

    def _only_workloads(self, kind: WorkloadKind, uids: set[str], version: int) -> None:
        if self._controller is not None:
            self._inbox.put(partial(self._controller.absent, kind, uids, version))

    def _only_nodes(self, uids: set[str], version: int) -> None:
        def drop() -> None:
            for name in self.cache.absent_nodes(uids):
                self._execution.saw_node(self.cache.lose_node(name))

        if self._work is not None:
            self._inbox.put(drop)

    def _only_pods(self, uids: set[str], version: int) -> None:
        def drop() -> None:
            for pod in self.cache.absent_pods(uids, version):
                self._execution.saw_pod(pod, True)

        if self._work is not None:
            self._inbox.put(drop)

    def _refuse_strangers(self) -> None:
        """Pods of another home would be taken for this one's: numbers of jobs begin at 1 in each."""
        other = [pod for pod in self.cache.pods.values() if pod.home != self.terms.home and identity_of(pod.name) is not None]
        if other:
            what = f"namespace {self.terms.namespace} has {len(other)} pods of another service's jobs, such as {other[0].name}"
            raise RefusedError(what, where="--namespace", fix="use that service's --home, another namespace, or delete them")


def _seconds(options: Mapping[str, str]) -> float:
    text = options.get("gang-timeout", "300")
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.0 < found < float("inf"):
        raise UsageError(f"'{text}' is no number of seconds", where="--gang-timeout", fix="write 300")
    return found


def check_version(client: ApiClient) -> int:
    """The minor version; a server that is too old is refused."""
    said = client.get("/version")
    minor = "".join(sign for sign in str(said.get("minor", "")) if sign.isdigit())
    if str(said.get("major")) == "1" and minor.isdigit() and int(minor) < _OLDEST:
        what = f"the API server is Kubernetes {said.get('gitVersion')}"
        raise RefusedError(what, where=client.access.server, fix=f"1.{_OLDEST} or later is needed")
    return int(minor or _OLDEST)


def _identity(home: Path) -> str:
    """By which pods know the home that made them: that of its store, or one of its own where it has none."""
    for name in ("store", "identity"):
        try:
            if known := (home / "jobs" / name).read_text(encoding="ascii").split():
                return known[0]
        except OSError:
            continue
    (home / "jobs").mkdir(mode=0o700, parents=True, exist_ok=True)
    made = secrets.token_hex(8)
    (home / "jobs" / "identity").write_text(made, encoding="ascii")
    return made
