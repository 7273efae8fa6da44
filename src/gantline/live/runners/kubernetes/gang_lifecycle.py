"""Brings gangs up and takes them down, in one thread: the next write that each needs, by what it shall be and what is seen of its pods.

A gang is brought up in three steps: all pods are made, none of them on a node; then all are bound to their nodes; then all run. It is taken
down whole as soon as one of its pods cannot go on. A look may be repeated at any time (`settle`): it does what is still to be done.

The folder of a gang (``jobs/ID/EPOCH`` of the home) has the order before any pod exists and the end before the pods are removed, so that
whatever a killed service leaves behind is found again: pods without an end go on, an end without pods is told again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gantline.core.inputs import Fault, News, Report
from gantline.engine.executor import Order
from gantline.live.runners.kubernetes.access import Object, path_of
from gantline.live.runners.kubernetes.client import ApiClient, ApiError
from gantline.live.runners.kubernetes.cluster_cache import ClusterCache
from gantline.live.runners.kubernetes.logs import LogCopies, LogCopy
from gantline.live.runners.kubernetes.pods_and_nodes import Pod, PodTerms, gang_name, identity_of, manifests, meeting_point, read_pod
from gantline.live.runners.kubernetes.write_queue import Done, WriteQueue
from gantline.live.runners.local.files import make_private, read_json, write_json
from gantline.live.runners.runner_context import Contact
from gantline.live.runners.runner_events import Ending, NodeNews, NodeState, RunnerEvents

_LATE_LOGS = 5.0  # seconds that the end of a gang waits for the rest of its output
_LINES = 20  # of the output that an end carries
_TAIL = 8192  # bytes in which they are looked for
_KEPT = (
    "devices", "places", "resumed", "believed", "resumes", "stopped_exit", "is_stopping", "grace", "is_bound", "generation",
)  # fmt: skip


@dataclass(frozen=True)
class GangEnd:
    """How a gang ended, or has to end."""

    news: News
    exit: int | None = None
    why: str = ""
    fault: Fault | None = None
    forced: bool = False


@dataclass
class PodGang:
    """One incarnation."""

    job: str
    epoch: int
    folder: Path
    row: int = -1
    devices: tuple[int, ...] = ()
    places: dict[str, list[int]] = field(default_factory=dict)  # node -> its devices there
    resumed: float = 0.0
    believed: float = 0.0  # work that was believed done when it was ordered to stop
    resumes: bool = False
    stopped_exit: int | None = None
    is_stopping: bool = False  # by order
    grace: int | None = None  # seconds that its pods have to end; None: as the job says
    is_bound: bool = False  # pods have begun to be bound: from then on one that is missing is lost
    order: Order | None = None  # None: adopted, and not repeated yet
    seen: set[str] = field(default_factory=set)  # pods that exist, or did
    bound: set[str] = field(default_factory=set)
    verdict: GangEnd | None = None  # it has to end, or has: this is why
    since: float = 0.0  # when it was made, by the monotonic clock
    is_running: bool = False  # that all its pods run was told
    over: bool = False
    workload: str = ""  # KIND/NAME/UID of the object that makes its pods; empty: we make them
    members: dict[str, str] = field(default_factory=dict)  # of a workload: its pods that were seen, and their first containers
    promised: dict[str, tuple[str, list[int]]] = field(default_factory=dict)  # of a workload: where pods are being bound to
    generation: str = ""  # the life of the store in which it was begun

    @property
    def workload_uid(self) -> str:
        return self.workload.rpartition("/")[2]

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """The pods and containers that print."""
        return sorted(self.members.items()) if self.workload else [(name, "main") for name in self.names]

    @property
    def names(self) -> list[str]:
        """Its pods, in the order of its nodes."""
        if self.workload:
            return sorted(self.members)
        return [f"{gang_name(self.job, self.epoch)}.{number}" for number in range(len(self.places))]

    @property
    def is_leaving(self) -> bool:
        return self.is_stopping or self.verdict is not None

    # --- its folder -----------------------------------------------------------------------------------------------------
    def write_order(self) -> None:
        make_private(self.folder)
        kept = {name: getattr(self, name) for name in _KEPT}
        write_json(str(self.folder / "order.json"), {**kept, "guest": self.workload})

    def write_end(self) -> None:
        """Nothing of it is left, and this is how it ended."""
        found = self.verdict or GangEnd(News.STOPPED)
        cause = {News.FINISHED: "finished", News.STOPPED: "stopped"}.get(found.news, "failed")
        fault = None if found.fault is None else found.fault.value
        make_private(self.folder)
        state = {"phase": "over", "cause": cause, "exit": found.exit, "why": found.why, "forced": found.forced, "fault": fault}
        state["generation"] = self.generation
        write_json(str(self.folder / "state.json"), state)
        self.over = True

    @staticmethod
    def read(job: str, epoch: int, folder: Path) -> PodGang:
        """What is written in a folder."""
        one = PodGang(job, epoch, folder)
        order, state = read_json(str(folder / "order.json")), read_json(str(folder / "state.json"))
        for name, value in (order if isinstance(order, dict) else {}).items():
            setattr(one, "workload" if name == "guest" else name, tuple(value) if name == "devices" else value)
        if isinstance(state, dict) and state.get("phase") == "over":
            one.generation = str(state.get("generation", one.generation))
            news = {"finished": News.FINISHED, "stopped": News.STOPPED}.get(str(state.get("cause")), News.FAILED)
            fault = Fault(state["fault"]) if state.get("fault") else None
            one.verdict, one.over = GangEnd(news, state.get("exit"), str(state.get("why") or ""), fault, bool(state.get("forced"))), True
        return one

    # --- judgement ------------------------------------------------------------------------------------------------------
    def ended(self, pods: dict[str, Pod | None]) -> GangEnd:
        """How it ended where it was told to: as the exit codes of its pods say."""
        codes = [pod.exit for pod in pods.values() if pod is not None and pod.exit is not None]
        bad = next((code for code in codes if code), 0)
        whole = len(codes) == len(pods)
        if self.verdict is not None:
            return self.verdict
        if self.workload:
            return GangEnd(News.STOPPED)
        if whole and bad == 0 and self.stopped_exit != 0:
            return GangEnd(News.FINISHED, 0)  # it had done all its work before it could stop
        forced = 137 in codes or (self.stopped_exit is not None and bad != self.stopped_exit) or (self.is_running and not whole)
        return GangEnd(News.STOPPED, bad if codes else None, forced=forced)

    # --- reports --------------------------------------------------------------------------------------------------------
    def report(self, news: News, saved: float, now: float) -> tuple[Report, Ending | None]:
        """What is told of it; `saved` is the work that the job has reported as saved (NaN: it does not report it)."""
        found, done = self.verdict if self.over else None, self.resumed
        if news is News.STOPPED and self.resumes and not (found is not None and found.forced):
            done = self.believed
        elif news in (News.STOPPED, News.FAILED):
            done = saved if not math.isnan(saved) else (self.resumed if self.resumes else 0.0)
        fault = found.fault if found is not None else None
        report = Report(news, self.row, self.epoch, now, done, () if self.over else self.devices, lost=fault)
        if found is None:
            return report, None
        return report, Ending(found.exit, found.why, self.last_lines() if news is News.FAILED else (), found.forced)

    def last_lines(self) -> tuple[str, ...]:
        try:
            with open(self.folder / "log", "rb") as file:
                file.seek(max(0, (self.folder / "log").stat().st_size - _TAIL))
                return tuple(file.read().decode("utf-8", "replace").splitlines()[-_LINES:])
        except OSError:
            return ()


def judge(gang: PodGang, pods: dict[str, Pod | None], lost: set[str]) -> GangEnd | None:
    """Why a gang that shall run cannot go on, or that it has finished; None: it goes on. `lost`: nodes that are gone."""
    for node in gang.places:
        if node in lost and gang.bound:
            return GangEnd(News.FAILED, None, f"node {node} is lost", Fault.NODE)
    for name, pod in pods.items():
        if pod is None:
            if name in gang.seen:
                return GangEnd(News.FAILED, None, f"pod {name} was deleted by force", Fault.ENGINE)
        elif pod.phase == "Failed":
            if pod.exit is None or pod.reason in ("Evicted", "Preempting", "NodeShutdown", "Terminated"):
                return GangEnd(News.FAILED, pod.exit, f"pod {name}: {pod.reason}: {pod.message}", Fault.ENGINE)
            why = "it used more memory than its limit" if pod.reason == "OOMKilled" else ""
            return GangEnd(News.FAILED, pod.exit, why)
        elif pod.is_deleted and pod.phase != "Succeeded":
            return GangEnd(News.FAILED, None, f"pod {name} was deleted, and not by this service", Fault.ENGINE)
        elif why := pod.cannot_start:
            return GangEnd(News.FAILED, None, why, Fault.JOB)
    if pods and all(pod is not None and pod.phase == "Succeeded" for pod in pods.values()):
        return GangEnd(News.FINISHED, 0)
    return None


@dataclass
class GangLifecycle:
    """All gangs: the newest of each job."""

    home: Path
    contact: Contact
    client: ApiClient
    cache: ClusterCache
    writes: WriteQueue
    logs: LogCopies
    terms: PodTerms
    timeout: float  # seconds after which a gang is given back whose pods do not all run
    gangs: dict[str, PodGang] = field(default_factory=dict)
    live: dict[str, PodGang] = field(default_factory=dict)  # those of them that are not over
    _nodes: list[NodeNews] = field(default_factory=list)
    _reports: list[tuple[Report, Ending | None]] = field(default_factory=list)
    _closing: dict[str, float] = field(default_factory=dict)  # job -> when its end no longer waits for output

    def room_was_made(self) -> None:
        """Something has ended: orders that waited may be carried out."""

    # --- what is told ---------------------------------------------------------------------------------------------------
    def flush(self) -> None:
        """Tell what has been noticed since the last time: nodes first."""
        if self._nodes or self._reports:
            nodes, reports = tuple(self._nodes), tuple(self._reports)
            self._nodes, self._reports = [], []
            self.contact.tell(RunnerEvents(nodes, reports))

    def repeat(self, gang: PodGang) -> None:
        """Say what it is, if it is anything yet."""
        if gang.row < 0:
            return
        if gang.over and gang.verdict is not None:
            self._say(gang.verdict.news, gang)
        elif gang.is_running and not gang.is_leaving:
            self._say(News.STARTED, gang)

    def _say(self, news: News, gang: PodGang) -> None:
        saved, clock = self.contact.task(gang.row).saved, self.contact.clock
        self._reports.append(gang.report(news, saved, clock.now()))

    # --- events ---------------------------------------------------------------------------------------------------------
    def saw_pod(self, pod: Pod, is_gone: bool = False) -> None:
        """A pod has changed."""
        if not self.cache.see_pod(pod, is_gone):
            return
        if not self.cache.is_ours(pod) and not self.cache.is_of_workload(pod):
            self._nodes += self.cache.taken(pod.node) if pod.node else []
            return
        gang = self._gang_of(pod)
        if gang is not None:
            self.settle(gang)
        elif not is_gone:
            self.clear(pod)
        if is_gone or pod.is_over:
            self.room_was_made()

    def saw_node(self, news: NodeNews | None) -> None:
        """A node has changed; gangs on one that is lost are over."""
        if news is None:
            return
        self._nodes.append(news)
        for gang in list(self.live.values()):
            if news.name in gang.places:
                self.settle(gang)
        if news.state is not NodeState.LOST:
            self._nodes += self.cache.taken(news.name)
        elif news.name not in self.cache.nodes:
            for pod in [pod for pod in self.cache.pods.values() if pod.node == news.name]:
                self.clear(pod)

    def look(self) -> None:
        """Time has passed: gangs may take too long to start or to end."""
        for gang in list(self.live.values()):
            if not gang.is_running or gang.is_leaving:
                self.settle(gang)

    # --- a gang ---------------------------------------------------------------------------------------------------------
    def settle(self, gang: PodGang) -> None:
        """The next step of a gang, whatever it is."""
        if gang.over:
            return
        pods = self._pods(gang)
        gang.seen |= {name for name, pod in pods.items() if pod is not None}
        gang.bound |= {name for name, pod in pods.items() if pod is not None and pod.node}
        if not gang.is_leaving:
            gang.verdict = judge(gang, pods, self._lost(gang)) or self._overdue(gang, pods)
            if gang.verdict is not None and gang.verdict.fault is Fault.NODE:
                gang.grace = 1  # ranks that wait for one that is gone cannot save
        if gang.is_leaving:
            self._take_down(gang, pods)
        else:
            self._bring_up(gang, pods)

    def _overdue(self, gang: PodGang, pods: dict[str, Pod | None]) -> GangEnd | None:
        """Half a gang does not keep its devices for ever."""
        late = [(name, pod) for name, pod in pods.items() if pod is None or not pod.runs]
        if gang.is_running or not late or time.monotonic() < gang.since + self.timeout:
            return None
        name, pod = late[0]
        why = "it was not made" if pod is None else (pod.message or pod.reason or "its node has not started it")
        what = f"{len(late)} of {len(pods)} pods did not start within {self.timeout:g} s, so the gang is given back; {name}: {why}"
        return GangEnd(News.FAILED, None, what, Fault.ENGINE)

    def _bring_up(self, gang: PodGang, pods: dict[str, Pod | None]) -> None:
        if any(pod is None for pod in pods.values()):
            if gang.order is not None:  # None: adopted while its pods were being made; the order is repeated
                self._make(gang, pods)
            return
        if not gang.is_bound:
            gang.is_bound = True
            gang.write_order()
        for name, node in zip(gang.names, gang.places):
            if name not in gang.bound:
                target = {"apiVersion": "v1", "kind": "Node", "name": node}
                value = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                self._write(gang, name, partial(self.client.create, f"{self._path('pods', name)}/binding", value))
        if not gang.is_running and all(pod is not None and (pod.runs or pod.phase == "Succeeded") for pod in pods.values()):
            gang.is_running = True
            self.repeat(gang)

    def _make(self, gang: PodGang, pods: dict[str, Pod | None]) -> None:
        assert gang.order is not None
        resource = next((self.cache.nodes[node].resource for node in gang.places if node in self.cache.nodes), "")
        if len(pods) > 1:
            point = meeting_point(self.terms, gang.job, gang.epoch)
            name = point["metadata"]["name"]
            if name not in gang.seen:
                self._write(gang, name, partial(self.client.apply, self._path("services", name), point))
        for wanted in manifests(self.terms, gang.order, self.contact.task(gang.row), gang.places, resource):
            name = wanted["metadata"]["name"]
            if pods[name] is None:
                self._write(gang, name, partial(self.client.apply, self._path("pods", name), wanted))

    def _take_down(self, gang: PodGang, pods: dict[str, Pod | None]) -> None:
        for name, pod in pods.items():
            if pod is not None and not pod.is_over and not pod.is_deleted:
                if pod.runs:
                    self._copy(gang)  # its output goes when its node confirms the deletion
                self._write(gang, name, partial(self._delete, pod, gang.grace if pod.node else 0))
        lost = self._lost(gang)
        left = [pod for pod in pods.values() if pod is not None and not pod.is_over and pod.node not in lost]
        if not left and not any(name in self.writes.under_way for name in gang.names):
            self._conclude(gang, pods, lost)

    def _conclude(self, gang: PodGang, pods: dict[str, Pod | None], lost: set[str]) -> None:
        """Nothing of it runs: it is closed when the rest of its output has come."""
        if lost or not any(pod is not None and pod.started for pod in pods.values()):
            self._close(gang)
        elif gang.job not in self._closing:
            self._closing[gang.job] = time.monotonic() + _LATE_LOGS
            self._copy(gang).when_over(lambda: self.writes.post(partial(self._close, gang)))
        elif time.monotonic() >= self._closing[gang.job]:
            self._close(gang)

    def _close(self, gang: PodGang) -> None:
        """Write the end down, then let the pods go and tell it."""
        if gang.over:
            return
        pods = self._pods(gang)
        gang.verdict = gang.ended(pods)
        gang.write_end()
        self._closing.pop(gang.job, None)
        self.live.pop(gang.job, None)
        self.logs.forget(gang.job, gang.epoch)
        for pod in pods.values():
            if pod is not None:
                self.clear(pod)
        if len(gang.places) > 1 and not gang.workload:
            name = meeting_point(self.terms, gang.job, gang.epoch)["metadata"]["name"]
            self.writes.begin(name, partial(self.client.delete, self._path("services", name)), lambda answer, refusal: None)
        self.repeat(gang)
        self.room_was_made()

    def clear(self, pod: Pod) -> None:
        """Remove a pod of ours that belongs to no gang which is there: its end is written down, or its time is over."""
        if self._gang_of(pod) is not None or not self.cache.is_ours(pod):
            return
        if not pod.is_deleted:
            grace = 1 if pod.node and not pod.is_over else 0
            self.writes.begin(pod.name, partial(self._delete, pod, grace), self._saw(pod))
        elif pod.is_held and (pod.is_over or pod.node not in self.cache.nodes):
            freed = {"metadata": {"uid": pod.uid, "finalizers": None}}
            self.writes.begin(pod.name, partial(self.client.merge, self._path("pods", pod.name), freed), self._saw(pod))

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _gang_of(self, pod: Pod) -> PodGang | None:
        """The gang that a pod belongs to, while it is there."""
        owner = identity_of(pod.name)
        gang = self.live.get(owner[0]) if owner is not None else None
        return gang if gang is not None and owner is not None and gang.epoch == owner[1] else None

    def _pods(self, gang: PodGang) -> dict[str, Pod | None]:
        return {name: self.cache.pods.get(name) for name in gang.names}

    def _lost(self, gang: PodGang) -> set[str]:
        return {node for node in gang.places if not self.cache.is_standing(node)}

    def _copy(self, gang: PodGang) -> LogCopy:
        most = self.contact.task(gang.row).launch.log_bytes if gang.row >= 0 else 1 << 20
        return self.logs.of(gang.job, gang.epoch, gang.outputs, gang.folder / "log", most)

    def _write(self, gang: PodGang, name: str, write: Callable[[], Object]) -> None:
        """A write for a gang; it is settled again with the answer."""

        def done(answer: Object | None, refusal: ApiError | None) -> None:
            if refusal is not None and refusal.code == 404 and gang.is_leaving:
                if (known := self.cache.pods.get(name)) is not None:
                    self.cache.see_pod(known, is_gone=True)
            elif refusal is not None and not gang.is_leaving:
                fault = Fault.JOB if refusal.code == 422 else Fault.ENGINE
                gang.verdict = GangEnd(News.FAILED, None, f"{refusal.where}: {refusal.what}", fault)
            elif answer is not None and answer.get("kind") == "Pod":
                self.cache.see_pod(read_pod(answer))
            elif answer is not None:
                (gang.seen if answer.get("kind") == "Service" else gang.bound).add(name)
            self.settle(gang)

        self.writes.begin(name, write, done)

    def _saw(self, pod: Pod) -> Done:
        def done(answer: Object | None, refusal: ApiError | None) -> None:
            if refusal is not None and refusal.code == 404:
                self.saw_pod(pod, is_gone=True)
            elif answer is not None and answer.get("kind") == "Pod":
                found = read_pod(answer)
                self.saw_pod(found, is_gone=found.is_confirmed and not found.is_held)

        return done

    def _delete(self, pod: Pod, grace: int | None) -> Object:
        return self.client.delete(self._path("pods", pod.name), grace, pod.uid)

    def _path(self, kind: str, name: str) -> str:
        return path_of(kind, self.terms.namespace, name)
