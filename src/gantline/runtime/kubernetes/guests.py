"""Objects of the cluster that make their own pods: plain jobs, and those of Kubeflow's training operator.

One with the label ``gantline.io/queue`` is taken in as it is: it is kept suspended until the policy gives its gang devices, as Kueue does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gantline.runtime.kubernetes.nodes import GPUS
from gantline.runtime.kubernetes.objects import Object, Shown, path_of
from gantline.runtime.kubernetes.pods import MARK, SCHEDULER, requests_of

QUEUE = f"{MARK}/queue"
_PARALLELISM = f"{MARK}/parallelism"  # of a Job that is held by a parallelism of zero: what it was
_ENDS = {"Complete": "finished", "Succeeded": "finished", "Failed": "failed"}


@dataclass(frozen=True, slots=True)
class GuestKind:
    """A kind of such objects."""

    name: str
    plural: str
    group: str  # with its version
    replicas: str = ""  # the field with a template for each role; empty: it has one template

    @property
    def resource(self) -> tuple[str, str]:
        """As roles name it: the resource, and its group without the version."""
        return self.plural, self.group.partition("/")[0]


KINDS = (
    GuestKind("Job", "jobs", "batch/v1"),
    GuestKind("PyTorchJob", "pytorchjobs", "kubeflow.org/v1", "pytorchReplicaSpecs"),
    GuestKind("MPIJob", "mpijobs", "kubeflow.org/v1", "mpiReplicaSpecs"),
)


@dataclass(frozen=True, slots=True)
class PodRole:
    """Pods that are alike."""

    name: str
    pods: int
    template: Shown

    @property
    def spec(self) -> Shown:
        found: Shown = self.template.get("spec") or {}
        return found

    def devices(self, slots: bool) -> int:
        """That each of its pods asks for; `slots`: CPUs are devices."""
        asked = requests_of(self.spec)
        return math.ceil(sum(asked.get(name, 0.0) for name in (("cpu",) if slots else GPUS)) - 1e-6)


@dataclass(frozen=True, slots=True)
class Guest:
    """One object."""

    kind: GuestKind
    value: Shown
    by_parallelism: bool = False  # its API server does not know ``suspend`` of a Job

    @property
    def head(self) -> Shown:
        found: Shown = self.value["metadata"]
        return found

    @property
    def name(self) -> str:
        return str(self.head["name"])

    @property
    def uid(self) -> str:
        return str(self.head["uid"])

    @property
    def version(self) -> int:
        return int(self.head["resourceVersion"])

    @property
    def spec(self) -> Shown:
        found: Shown = self.value.get("spec") or {}
        return found

    @property
    def policy(self) -> Shown:
        """Where it says for how long it may run, and whether it is suspended."""
        found: Shown = (self.spec.get("runPolicy") or {}) if self.kind.replicas else self.spec
        return found

    @property
    def notes(self) -> Shown:
        found: Shown = self.head.get("annotations") or {}
        return found

    @property
    def queue(self) -> str:
        """As its label says, or in full (``research/nlp``) an annotation of the same name: labels have no slashes."""
        return str(self.notes.get(QUEUE) or (self.head.get("labels") or {}).get(QUEUE) or "")

    @property
    def path(self) -> str:
        return path_of(self.kind.plural, str(self.head["namespace"]), self.name, self.kind.group)

    @property
    def title(self) -> str:
        """By which a job knows it."""
        return f"{self.kind.name}/{self.name}/{self.uid}"

    @property
    def end(self) -> tuple[str, str]:
        """``finished`` or ``failed``, and why; empty: it has not ended."""
        for one in (self.value.get("status") or {}).get("conditions") or ():
            if one.get("status") == "True" and one.get("type") in _ENDS:
                return _ENDS[one["type"]], ": ".join(str(one[key]) for key in ("reason", "message") if one.get(key))
        return "", ""

    @property
    def roles(self) -> tuple[PodRole, ...]:
        if not self.kind.replicas:
            return (PodRole("", self._parallelism, self.spec.get("template") or {}),)
        found = self.spec.get(self.kind.replicas) or {}
        return tuple(PodRole(name, int(one.get("replicas", 1)), one.get("template") or {}) for name, one in sorted(found.items()))

    @property
    def expected(self) -> int:
        """How many pods it has at once while it runs; one that completes many of them has fewer at its end."""
        if self.kind.replicas:
            return sum(role.pods for role in self.roles)
        wanted = self.spec.get("completions")
        done = int((self.value.get("status") or {}).get("succeeded") or 0)
        return self._parallelism if wanted is None else min(self._parallelism, max(0, int(wanted) - done))

    @property
    def _parallelism(self) -> int:
        given = int(self.spec.get("parallelism", 1))
        kept = str(self.notes.get(_PARALLELISM, ""))
        return int(kept) if given == 0 and kept.isdigit() else given

    @property
    def asks(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        """What decides whether it can be taken in: its specification's generation, and annotations that are not ours."""
        own = (f"{MARK}/refused", f"{MARK}/why")
        notes = sorted((key, str(value)) for key, value in self.notes.items() if key not in own)
        return int(self.head.get("generation") or 0), tuple(notes)

    def renewed(self, value: Shown) -> Guest:
        """The same object, as an answer shows it."""
        return replace(self, value=value)

    # --- suspended and admitted -----------------------------------------------------------------------------------------
    @property
    def is_suspended(self) -> bool:
        return self.spec.get("parallelism") == 0 if self._holds_by_parallelism else self.policy.get("suspend") is True

    @property
    def names_us(self) -> bool:
        """Whether its pods ask for this scheduler."""
        return all(role.spec.get("schedulerName") == SCHEDULER for role in self.roles)

    def hold(self, **notes: str | None) -> Object:
        """The change that suspends it, with annotations (None: without that one); templates that can be changed now name this scheduler."""
        marks = {f"{MARK}/{key}": value for key, value in notes.items()}
        if self._holds_by_parallelism:
            return self._patch({**marks, _PARALLELISM: str(self._parallelism)}, {"parallelism": 0})
        if not self.kind.replicas:
            return self._patch(marks, {"suspend": True})
        named = {role.name: {"template": {"spec": {"schedulerName": SCHEDULER}}} for role in self.roles}
        return self._patch(marks, {"runPolicy": {"suspend": True}, self.kind.replicas: named})

    def mark(self, **notes: str | None) -> Object:
        """The change that writes annotations only."""
        return self._patch({f"{MARK}/{key}": value for key, value in notes.items()}, {})

    def admit(self, sizes: Mapping[str, int], epoch: int) -> Object:
        """The change that lets it run, with so many pods in each role."""
        marks: dict[str, str | None] = {f"{MARK}/epoch": str(epoch), f"{MARK}/why": None}
        if not self.kind.replicas:
            freed: Object = {} if self._holds_by_parallelism else {"suspend": False}
            return self._patch(marks, {**freed, "parallelism": sizes[""]})
        counts = {name: {"replicas": pods} for name, pods in sizes.items()}
        return self._patch(marks, {"runPolicy": {"suspend": False}, self.kind.replicas: counts})

    def sizes(self, devices: int, slots: bool) -> dict[str, int]:
        """How many pods of each role use so many devices: those of the elastic role change, the others stay."""
        found = {role.name: role.pods for role in self.roles}
        asked = sum(role.pods * role.devices(slots) for role in self.roles)
        role = self.elastic_role
        if role is not None and devices != asked and (each := role.devices(slots)):
            found[role.name] += (devices - asked) // each
        return found

    @property
    def elastic_role(self) -> PodRole | None:
        """The one whose number of pods may change."""
        return next((role for role in self.roles if role.name in ("", "Worker")), None)

    @property
    def _holds_by_parallelism(self) -> bool:
        return self.by_parallelism and not self.kind.replicas

    def _patch(self, notes: Mapping[str, str | None], spec: Object) -> Object:
        found: Object = {"metadata": {"uid": self.uid, "annotations": dict(notes)}}
        return {**found, "spec": spec} if spec else found

    def variables(self) -> Iterator[tuple[str, str]]:
        """The environment of the first container of the role that leads, as far as it is written out."""
        roles = {role.name: role for role in self.roles}
        leader = roles.get("Launcher") or roles.get("Master") or self.roles[0]
        containers: list[Object] = leader.spec.get("containers") or [{}]
        for one in containers[0].get("env") or ():
            if one.get("value") is not None:
                yield str(one["name"]), str(one["value"])
