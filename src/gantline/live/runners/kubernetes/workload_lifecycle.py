"""Admits objects of the cluster whose gang has devices, and suspends them again: their own controllers make and remove the pods.

A pod that such an object makes asks for this scheduler, and waits for a node until it is bound to one of those that the plan chose. What
ends the gang is what the object's status says; its controller may replace pods meanwhile, and the new ones go where the old ones were.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from gantline.core.inputs import Fault
from gantline.engine.executor import News
from gantline.live.runners.kubernetes.access import Object
from gantline.live.runners.kubernetes.client import ApiError
from gantline.live.runners.kubernetes.gang import GangEnd, PodGang
from gantline.live.runners.kubernetes.pod_lifecycle import PodLifecycle
from gantline.live.runners.kubernetes.pods_and_nodes import MARK, Pod
from gantline.live.runners.kubernetes.workloads import Workload
from gantline.live.runners.kubernetes.write_queue import WorkloadChanges


@dataclass
class WorkloadLifecycle(PodLifecycle):
    """Gangs of pods that we make (`PodLifecycle`), and those of workloads."""

    slots: bool = False
    job_of_workload: dict[str, str] = field(default_factory=dict)  # uid of a workload -> its job
    look_at: Callable[[str], None] = lambda uid: None  # called with the uid of an object whose gang is over
    changes: WorkloadChanges = field(init=False)  # `WorkloadController` makes it

    def note_workload(self, gang: PodGang) -> None:
        """A gang that is a workload's was made, or found."""
        if gang.workload:
            self.job_of_workload[gang.workload_uid] = gang.job

    def gang_of_workload(self, uid: str) -> PodGang | None:
        return self.live.get(self.job_of_workload.get(uid, ""))

    # --- the next step of a workload ---------------------------------------------------------------------------------------
    def settle(self, gang: PodGang) -> None:
        if not gang.workload or gang.over:
            super().settle(gang)
            return
        workload, pods = self.cache.workloads.get(gang.workload_uid), self._pods(gang)
        gang.seen |= set(pods)
        if not gang.is_leaving and workload is not None:  # None: it was deleted by hand, and its job is being cancelled
            gang.verdict = self._judge(gang, workload, pods) or self._late(gang, workload, pods)
        if gang.is_leaving:
            self._suspend(gang, workload, pods)
        elif workload is not None:
            self._admit(gang, workload, pods)

    def _judge(self, gang: PodGang, workload: Workload, pods: dict[str, Pod | None]) -> GangEnd | None:
        """Why it cannot go on, or that it has ended."""
        ended, why = workload.end
        if ended == "finished":
            return GangEnd(News.FINISHED, 0)
        if ended:
            codes = [pod.exit for pod in self.cache.made_by(workload.uid) if pod.exit]
            return GangEnd(News.FAILED, codes[0] if codes else 1, why)
        there = [pod for pod in pods.values() if pod is not None]
        if lost := self._lost(gang) & {pod.node for pod in there}:
            return GangEnd(News.FAILED, None, f"node {min(lost)} is lost", Fault.NODE)
        return next((GangEnd(News.FAILED, 1, why, Fault.JOB) for pod in there if (why := pod.cannot_start)), None)

    def _late(self, gang: PodGang, workload: Workload, pods: dict[str, Pod | None]) -> GangEnd | None:
        if gang.is_running or time.monotonic() < gang.since + self.timeout:
            return None
        run = sum(pod is not None and pod.runs for pod in pods.values())
        what = f"{workload.expected - run} of {workload.expected} pods did not start within {self.timeout:g} s, so the gang is given back"
        return GangEnd(News.FAILED, None, what, Fault.ENGINE)

    def _admit(self, gang: PodGang, workload: Workload, pods: dict[str, Pod | None]) -> None:
        if workload.is_suspended and self._left(gang, pods):
            return  # its controller still removes pods of an earlier life, which may be anywhere
        if not workload.is_admitted(gang.epoch):
            self._change(gang, workload, workload.admit(workload.sizes(len(gang.devices)), gang.epoch))
            return
        if workload.counts != workload.given:  # its owner wants another number: the gang's own stays while it runs
            self._change(gang, workload, workload.admit(workload.given or workload.sizes(len(gang.devices)), gang.epoch))
            return
        for pod in pods.values():
            waits = pod is not None and not pod.node and not pod.is_deleted and pod.name not in gang.promised
            if pod is not None and waits and (place := self._place(gang, pod, pods)) is not None:
                self._bind(gang, pod, *place)
        run = sum(pod is not None and (pod.runs or pod.phase == "Succeeded") for pod in pods.values())
        if not gang.is_running and run and run >= workload.expected:
            gang.is_running = True
            self._copy(gang)  # its controller removes pods as soon as it is suspended
            self.repeat(gang)

    def _place(self, gang: PodGang, pod: Pod, pods: dict[str, Pod | None]) -> tuple[str, list[int]] | None:
        """A node of the gang that has as many free devices as a pod asks for; None: there is none while another pod of it is there."""
        resource = next((self.cache.nodes[node].resource for node in gang.places if node in self.cache.nodes), "")
        count = round(pod.uses.get(resource, 0.0) + 0.499)
        used: dict[str, set[int]] = {}
        for node, places in gang.promised.values():
            used.setdefault(node, set()).update(places)
        for other in pods.values():
            if other is not None and other.node and not other.is_over:
                used.setdefault(other.node, set()).update(other.places)
        for node, places in gang.places.items():
            free = [place for place in places if place not in used.get(node, set())]
            if len(free) >= count:
                return node, free[:count]
        return None

    def _bind(self, gang: PodGang, pod: Pod, node: str, places: list[int]) -> None:
        gang.promised[pod.name] = (node, places)
        notes = {"home": self.terms.home, "epoch": str(gang.epoch), "node": node, "places": ",".join(map(str, places))}
        head = {"name": pod.name, "uid": pod.uid, "annotations": {f"{MARK}/{key}": value for key, value in notes.items()}}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        value = {"apiVersion": "v1", "kind": "Binding", "metadata": head, "target": target}

        def done(answer: Object | None, refusal: ApiError | None) -> None:
            if refusal is not None:
                gang.promised.pop(pod.name, None)  # it is gone, or on a node already: the watch says which

        self.writes.begin(pod.name, partial(self.client.create, f"{self._path('pods', pod.name)}/binding", value), done)

    def _suspend(self, gang: PodGang, workload: Workload | None, pods: dict[str, Pod | None]) -> None:
        """Its controller removes the pods; those of an object that is gone are removed here."""
        left = self._left(gang, pods)
        if workload is None:
            for pod in left:
                if not pod.is_deleted:
                    self.writes.begin(pod.name, partial(self._delete, pod, gang.grace), self._saw(pod))
        elif not workload.is_suspended and not workload.end[0]:
            self._change(gang, workload, workload.hold(why=gang.verdict.why if gang.verdict is not None else None))
            return
        if not left and gang.workload not in self.writes.under_way:
            self._conclude(gang, pods, self._lost(gang))

    def _left(self, gang: PodGang, pods: dict[str, Pod | None]) -> list[Pod]:
        """Its pods that are not over, on nodes that are there."""
        lost = self._lost(gang)
        return [pod for pod in pods.values() if pod is not None and not pod.is_over and pod.node not in lost]

    def _change(self, gang: PodGang, workload: Workload, change: Object) -> None:
        """Write to the object; the gang is settled again with the answer."""

        def refused(refusal: ApiError) -> None:
            if not gang.is_leaving:
                gang.verdict = GangEnd(News.FAILED, 1, f"{refusal.where}: {refusal.what}", Fault.JOB)
                self.settle(gang)

        self.changes.make(workload, change, refused)

    def _close(self, gang: PodGang) -> None:
        super()._close(gang)
        if gang.workload:
            self.flush()  # how it ended is told before anything that is asked because of it
            self.look_at(gang.workload_uid)

    # --- whose pod it is ------------------------------------------------------------------------------------------------
    def _pods(self, gang: PodGang) -> dict[str, Pod | None]:
        if not gang.workload:
            return super()._pods(gang)
        there = [pod for pod in self.cache.made_by(gang.workload_uid) if not (pod.is_over and pod.phase != "Succeeded")]
        found: dict[str, Pod | None] = {pod.name: pod for pod in sorted(there, key=lambda pod: pod.name)}
        gang.members |= {pod.name: pod.container for pod in there}
        gang.promised = {name: place for name, place in gang.promised.items() if (pod := found.get(name)) is not None and not pod.node}
        return found

    def _gang_of(self, pod: Pod) -> PodGang | None:
        return self.gang_of_workload(pod.owner) if self.cache.is_of_workload(pod) else super()._gang_of(pod)
