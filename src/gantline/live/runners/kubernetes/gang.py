"""One incarnation of a job as a gang of pods: what it shall be, what has become of it, and the folder where that is written down.

The folder (``jobs/ID/EPOCH`` of the home) has the order before any pod exists and the end before the pods are removed, so that whatever
a killed service leaves behind is found again: pods without an end go on, an end without pods is told again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from gantline.core.inputs import Fault, News, Report
from gantline.engine.executor import Order
from gantline.live.runners.kubernetes.pods_and_nodes import Pod, gang_name
from gantline.live.runners.local.files import make_private, read_json, write_json
from gantline.live.runners.runner_events import Ending

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
