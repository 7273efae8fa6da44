"""A stand-in for the controllers of Jobs, PyTorchJobs and MPIJobs: makes their pods, replaces those that fail, removes them when the object
is suspended, and writes its status. It looks at everything again and again, which is slow and simple."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import Any

from gantline.core.errors import GantlineError
from gantline.live.runners.kubernetes.access import find_access, path_of
from gantline.live.runners.kubernetes.client import ApiClient

_DEFINITIONS = "apiextensions.k8s.io/v1"
_OPERATORS = {"PyTorchJob": ("pytorchjobs", "pytorchReplicaSpecs"), "MPIJob": ("mpijobs", "mpiReplicaSpecs")}
_KUBEFLOW = "kubeflow.org/v1"
_KINDS = {"jobs": ("batch/v1", "")} | {plural: (_KUBEFLOW, field) for plural, field in _OPERATORS.values()}


def definition(kind: str) -> dict[str, Any]:
    """The smallest definition of one of Kubeflow's kinds: fields are kept as they are written."""
    plural, _ = _OPERATORS[kind]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": _DEFINITIONS, "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org", "scope": "Namespaced", "versions": [version],
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
        },
    }  # fmt: skip


class Controllers:
    """Of one namespace, in a thread of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        self.client = ApiClient(find_access(str(kubeconfig)))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def define(self) -> None:
        for kind, (plural, _) in _OPERATORS.items():
            self.client.create(path_of("customresourcedefinitions", group=_DEFINITIONS), definition(kind))
            end = time.monotonic() + 90
            while True:
                with contextlib.suppress(GantlineError):
                    self.client.get(path_of(plural, "default", group=_KUBEFLOW))
                    break
                assert time.monotonic() < end, f"{kind} is not served"
                time.sleep(0.05)

    def __enter__(self) -> Controllers:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            with contextlib.suppress(GantlineError):
                self._look()

    def _look(self) -> None:
        pods, there = self.client.get(path_of("pods", "default"))["items"], set[str]()
        for plural, (group, field) in _KINDS.items():
            for one in self.client.get(path_of(plural, "default", group=group))["items"]:
                spec = one["spec"]
                there.add(one["metadata"]["uid"])
                held = (spec.get("runPolicy") or {}).get("suspend")
                roles = {"": (spec["parallelism"], spec["template"])} if not field else {
                    name: (0 if held else each["replicas"], each["template"]) for name, each in spec[field].items()
                }  # fmt: skip
                self._tend(one, plural, roles, pods)
        for pod in pods:  # as the garbage collector does
            owners = {owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()}
            if owners and not owners & there and not pod["metadata"].get("deletionTimestamp"):
                self.client.delete(path_of("pods", "default", pod["metadata"]["name"]))

    def _tend(self, one: dict[str, Any], plural: str, roles: dict[str, tuple[int, Any]], pods: list[dict[str, Any]]) -> None:
        head, spec = one["metadata"], one["spec"]
        if (one.get("status") or {}).get("conditions"):
            return
        mine = [pod for pod in pods if any(owner["uid"] == head["uid"] for owner in pod["metadata"].get("ownerReferences") or ())]
        phases = [pod["status"].get("phase") for pod in mine if not pod["metadata"].get("deletionTimestamp")]
        wanted = sum(count for count, _ in roles.values())
        is_bad = phases.count("Failed") > spec.get("backoffLimit", 6)
        if is_bad:
            self._say(one, plural, {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "it failed"})
        elif wanted and phases.count("Succeeded") >= spec.get("completions", wanted):
            kind = "Complete" if plural == "jobs" else "Succeeded"
            self._say(one, plural, {"type": kind, "status": "True", "reason": "Done", "message": "all pods succeeded"})
        for role, (count, template) in roles.items():
            of = [pod for pod in mine if pod["metadata"]["labels"]["role"] == role]
            active = [pod for pod in of if pod["status"].get("phase") not in ("Succeeded", "Failed")]
            done = sum(pod["status"].get("phase") == "Succeeded" for pod in of)
            left = min(count, spec.get("completions", count) - done) if count and not is_bad else 0
            for pod in active[max(0, left) :]:
                if not pod["metadata"].get("deletionTimestamp"):
                    self.client.delete(path_of("pods", "default", pod["metadata"]["name"]))
            for _ in range(len(active), left):
                self._make(head, plural, role, template)

    def _make(self, head: dict[str, Any], plural: str, role: str, template: dict[str, Any]) -> None:
        owner = {"apiVersion": _KINDS[plural][0], "kind": plural, "name": head["name"], "uid": head["uid"], "controller": True}
        made = {"generateName": f"{head['name']}-{role.lower() or 'pod'}-", "labels": {"role": role}, "ownerReferences": [owner]}
        self.client.create(path_of("pods", "default"), {"metadata": made, "spec": template["spec"]})

    def _say(self, one: dict[str, Any], plural: str, condition: dict[str, str]) -> None:
        path = path_of(plural, "default", one["metadata"]["name"], _KINDS[plural][0])
        self.client.merge(f"{path}/status", {"status": {"conditions": [condition]}})
