"""Objects of the cluster that make their own pods: plain jobs, and those of Kubeflow's training operator.

One with the label ``gantline.io/queue`` is taken in as it is: it is kept suspended until the policy gives its gang devices, as Kueue does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gantline.live.runners.kubernetes.access import Object, Shown, path_of
from gantline.live.runners.kubernetes.pods_and_nodes import GPUS, MARK, SCHEDULER, requests_of

QUEUE = f"{MARK}/queue"
_MADE = f"{MARK}/made"  # fields that are changed here, as its owner wrote them: the change that brings them back
_GIVEN = f"{MARK}/given"  # numbers of pods that were written here, by role
_ASKED = f"{MARK}/asked"  # what its owner asked for when it was submitted
_CONFLICT = f"{MARK}/conflict"  # why it is not changed yet: others change it all the time
_OWN = (*(f"{MARK}/{name}" for name in ("job", "home", "epoch", "why", "refused")), _MADE, _GIVEN, _ASKED, _CONFLICT)
_ENDS = {"Complete": "finished", "Succeeded": "finished", "Failed": "failed"}


@dataclass(frozen=True, slots=True)
class WorkloadKind:
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
    WorkloadKind("Job", "jobs", "batch/v1"),
    WorkloadKind("PyTorchJob", "pytorchjobs", "kubeflow.org/v1", "pytorchReplicaSpecs"),
    WorkloadKind("MPIJob", "mpijobs", "kubeflow.org/v1", "mpiReplicaSpecs"),
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
class Workload:
    """One object."""

    kind: WorkloadKind
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
        """With as many pods as its owner wants."""
        wanted, found = self.wanted, self._by_role(self.spec)
        return tuple(PodRole(name, wanted[name], one.get("template") or {}) for name, one in sorted(found.items()))

    @property
    def counts(self) -> dict[str, int]:
        """Pods of each role, as it is written now."""
        return self._counts_in(self.spec)

    @property
    def given(self) -> dict[str, int]:
        """Pods of each role, as they were written here; empty: as its owner wrote them."""
        return found if self._are_by_role(found := noted(self.notes, _GIVEN)) else {}

    @property
    def wanted(self) -> dict[str, int]:
        """Pods of each role that its owner wants: a number which was not written here is its owner's."""
        given, before = self.given, self._before
        made: Mapping[str, int] = self._counts_in(before) if before else self.asked.get("pods") or {}

        def is_ours(name: str, pods: int) -> bool:
            return pods == given.get(name) or (pods == 0 and self._holds_by_parallelism)

        return {name: made.get(name, pods) if is_ours(name, pods) else pods for name, pods in self.counts.items()}

    @property
    def misread(self) -> str:
        """The first number of pods that is none, in words: not every API server checks what operators' objects say. Empty: all are read."""
        for name, one in (self.spec.get(self.kind.replicas) or {}).items() if self.kind.replicas else ():
            if not isinstance(one, dict):
                return f"{self.kind.replicas}.{name} is {one!r}, without a template"
            if not is_count(pods := one.get("replicas", 1)):
                return f"{self.kind.replicas}.{name}.replicas is {pods!r}, no whole number"
        return ""

    def _counts_in(self, spec: Shown) -> dict[str, int]:
        """One that cannot be read is what was written here."""
        field = "replicas" if self.kind.replicas else "parallelism"
        found = {name: one.get(field, 1) for name, one in self._by_role(spec).items()}
        return {name: int(pods) if is_count(pods) else self.given.get(name, 0) for name, pods in found.items()}

    def _by_role(self, spec: Shown) -> dict[str, Shown]:
        """What is written of each role."""
        if not self.kind.replicas:
            return {"": spec}
        return {name: one if isinstance(one, dict) else {} for name, one in (spec.get(self.kind.replicas) or {}).items()}

    @property
    def has_label(self) -> bool:
        return QUEUE in (self.head.get("labels") or {})

    @property
    def expected(self) -> int:
        """How many pods it has at once while it runs; one that completes many of them has fewer at its end."""
        pods, wanted = sum(self.counts.values()), None if self.kind.replicas else self.spec.get("completions")
        done = int((self.value.get("status") or {}).get("succeeded") or 0)
        return pods if wanted is None else min(pods, max(0, int(wanted) - done))

    @property
    def asked(self) -> Object:
        """What its owner asked for when it was submitted (`guest_spec.asks_of`); empty: it was not."""
        found = noted(self.notes, _ASKED)
        is_read = all(self._are_by_role(found.get(name)) for name in ("pods", "devices"))
        return found if is_read and found["pods"].keys() == found["devices"].keys() else {}

    def _are_by_role(self, found: object) -> bool:
        return are_counts(found, *(() if self.kind.replicas else ("",)))

    def renewed(self, value: Shown) -> Workload:
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

    @property
    def unreadable(self) -> str:
        """Said to its owner where what is noted of the fields that are changed here was edited by hand and cannot be read."""
        if _MADE not in self.notes or self._before:
            return ""
        rest = "it has as many pods as it was submitted with, and suspend and the scheduler count as not written by its owner"
        return f"annotation {_MADE} cannot be read, and counts as absent: {rest}; leave annotations of the service as they are"

    def hold(self, **notes: str | None) -> Object:
        """The change that suspends it, with annotations (None: without that one); templates that can be changed now name this scheduler."""
        marks = {**self._marks(notes), _MADE: line(self._made), f"{MARK}/epoch": None}
        if self._holds_by_parallelism:
            return self._change({**marks, _GIVEN: line({"": 0})}, {"parallelism": 0})
        marks[_GIVEN] = None
        if not self.kind.replicas:
            return self._change(marks, {"suspend": True, "parallelism": self.wanted[""]})
        named: Object = {"template": {"spec": {"schedulerName": SCHEDULER}}}
        roles = {name: {"replicas": pods, **named} for name, pods in self.wanted.items()}
        return self._change(marks, {"runPolicy": {"suspend": True}, self.kind.replicas: roles})

    def mark(self, **notes: str | None) -> Object:
        """The change that writes annotations only: they are ours, so that it may be made to any version of the object."""
        return {"metadata": {"uid": self.uid, "annotations": self._marks(notes)}}

    def admit(self, sizes: Mapping[str, int], epoch: int) -> Object:
        """The change that lets it run, with so many pods in each role."""
        marks = {**self._marks({"epoch": str(epoch), "why": None}), _MADE: line(self._made), _GIVEN: line(sizes)}
        if not self.kind.replicas:
            freed: Object = {} if self._holds_by_parallelism else {"suspend": False}
            return self._change(marks, {**freed, "parallelism": sizes[""]})
        counts = {name: {"replicas": pods} for name, pods in sizes.items()}
        return self._change(marks, {"runPolicy": {"suspend": False}, self.kind.replicas: counts})

    def release(self) -> Object:
        """The change that leaves it as its owner made it; empty: nothing was changed here."""
        ours = [name for name in self.notes if name in _OWN]
        return self._change(dict.fromkeys(ours), self._made if _MADE in ours else {}) if ours else {}

    def is_admitted(self, epoch: int) -> bool:
        return not self.is_suspended and self.notes.get(f"{MARK}/epoch") == str(epoch)

    @property
    def _made(self) -> Object:
        """Fields that are changed here, as its owner wrote them."""
        before: Shown = self._before if _MADE in self.notes else self.spec
        if not self.kind.replicas:
            suspend: Object = {} if self._holds_by_parallelism else {"suspend": before.get("suspend")}
            return {"parallelism": self.wanted[""], **suspend}
        kept = before.get(self.kind.replicas) or {}

        def made(role: PodRole) -> Object:
            names = role.spec.get("schedulerName")
            if names == SCHEDULER and (role.name in kept or self.unreadable):
                names = scheduler_of(kept.get(role.name) or {})
            return {"replicas": role.pods, "template": {"spec": {"schedulerName": names}}}

        policy = before.get("runPolicy") or {}
        return {"runPolicy": {"suspend": policy.get("suspend")}, self.kind.replicas: {role.name: made(role) for role in self.roles}}

    @property
    def _before(self) -> Object:
        """These fields as they were noted when they were changed; empty: they were not, or cannot be read."""
        return found if are_fields_of_owner(found := noted(self.notes, _MADE), self.kind.replicas) else {}

    def sizes(self, devices: int) -> dict[str, int]:
        """How many pods of each role use so many devices, as it was submitted: those of the elastic role change, the others admission."""
        pods, each = dict(self.asked.get("pods") or self.wanted), self.asked.get("devices") or {}
        asked, role = sum(count * each.get(name, 0) for name, count in pods.items()), self.elastic_role
        if role is not None and devices != asked and each.get(role.name):
            pods[role.name] += (devices - asked) // each[role.name]
        return pods

    @property
    def elastic_role(self) -> PodRole | None:
        """The one whose number of pods may change."""
        return next((role for role in self.roles if role.name in ("", "Worker")), None)

    @property
    def _holds_by_parallelism(self) -> bool:
        return self.by_parallelism and not self.kind.replicas

    def _marks(self, notes: Mapping[str, str | None]) -> dict[str, str | None]:
        return {f"{MARK}/{key}": value for key, value in notes.items()}

    def _change(self, notes: Mapping[str, str | None], spec: Object) -> Object:
        """The change of fields that its owner writes as well: of this version only, because a newer one may have an edit of them."""
        head = {"uid": self.uid, "resourceVersion": self.head["resourceVersion"], "annotations": {**notes, _CONFLICT: None}}
        return {"metadata": head, "spec": spec}

    def variables(self) -> Iterator[tuple[str, str]]:
        """The environment of the first container of the role that leads, as far as it is written out."""
        roles = {role.name: role for role in self.roles}
        leader = roles.get("Launcher") or roles.get("Master") or self.roles[0]
        containers: list[Object] = leader.spec.get("containers") or [{}]
        for one in containers[0].get("env") or ():
            if one.get("value") is not None:
                yield str(one["name"]), str(one["value"])


# Annotations of ours that have a value: what was written here is read as it is, what was edited by hand into another
# shape is not.


def noted(notes: Shown, name: str) -> Object:
    """The value of an annotation; empty: it has none."""
    try:
        found = json.loads(str(notes.get(name) or "{}"))
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def line(value: Shown) -> str:
    """A value as an annotation has it."""
    return json.dumps(value, sort_keys=True)


def are_counts(value: object, *roles: str) -> bool:
    """Numbers of something by role, of these at least."""
    return isinstance(value, dict) and value.keys() >= set(roles) and all(is_count(one) for one in value.values())


def are_fields_of_owner(value: Object, replicas: str) -> bool:
    """Whether these are the fields that a service changes (`Workload.hold`), of an object whose roles are in the field `replicas`."""
    if not replicas:
        return is_count(value.get("parallelism")) and _is_flag(value.get("suspend"))
    policy, roles = value.get("runPolicy"), value.get(replicas)
    return isinstance(policy, dict) and _is_flag(policy.get("suspend")) and isinstance(roles, dict) and all(map(_is_role, roles.values()))


def scheduler_of(role: Object) -> object:
    """The scheduler that the template of a role names."""
    template = role.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    return spec.get("schedulerName") if isinstance(spec, dict) else None


def _is_role(value: object) -> bool:
    return isinstance(value, dict) and is_count(value.get("replicas")) and isinstance(scheduler_of(value), str | None)


def is_count(value: object) -> bool:
    """Whether it is a whole number of something."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: object) -> bool:
    return value is None or isinstance(value, bool)
