"""A stand-in for the kubelets of some machines: runs pods' commands as local processes, and reports as kubelets do.

``python -m tests.system.kubelets HOME PORT``. It admits pods by what they request, starts them, reports their phases and exit codes, serves
their logs to the API server, and ends those that are deleted: SIGTERM to the first process, after the grace period SIGKILL to all, then
the deletion is confirmed. It also does what the node controller does: a node that is silent becomes unknown. Lines on standard input cut
nodes off (``cut NODE``), switch them off (``kill NODE``) and bring them back (``back NODE``);
``mute NODE`` has it do nothing, while it still seems ready.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from gantline.core.errors import GantlineError
from gantline.live.runners.kubernetes.access import find_access, path_of
from gantline.live.runners.kubernetes.client import ApiClient, ApiError
from gantline.live.runners.kubernetes.pods_and_nodes import amount

_TICK = 0.03


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Container:
    """The process of one pod."""

    pod: dict[str, Any]
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    started: str = ""
    asked: float = 0.0  # when it was told to end, by the monotonic clock
    told: tuple[Any, ...] = ()  # what was reported last
    refused: tuple[str, str] = ("", "")  # reason and message, where it was not admitted or could not be made
    ended: str = ""

    @property
    def key(self) -> str:
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"

    @property
    def is_over(self) -> bool:
        return (bool(self.refused[0]) and not self.waits) or (self.process is not None and self.process.poll() is not None)

    @property
    def waits(self) -> bool:
        """Whether it waits for an image that does not come."""
        return self.refused[0] in ("ErrImagePull", "ImagePullBackOff", "CreateContainerError")

    def start(self) -> None:
        spec = self.pod["spec"]["containers"][0]
        if str(spec["image"]).startswith("missing"):
            self.refused = ("ImagePullBackOff", f'Back-off pulling image "{spec["image"]}"')
            return
        volumes = {one["name"]: one for one in self.pod["spec"].get("volumes") or ()}
        for mount in spec.get("volumeMounts") or ():
            host = (volumes[mount["name"]].get("hostPath") or {}).get("path", "")
            source = os.path.join(host, mount.get("subPath", ""))
            if not host or source.rstrip("/") != mount["mountPath"].rstrip("/"):
                self.refused = ("CreateContainerError", f"stand-ins mount only what has the same path outside: {mount['mountPath']}")
                return
            os.makedirs(source, exist_ok=True)
        env = {one["name"]: str(one.get("value", "")) for one in spec.get("env") or ()}
        if ".svc" in env.get("MASTER_ADDR", ""):  # what a cluster's name server would say of a local pod
            env["MASTER_ADDR"] = "127.0.0.1"
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [*(spec.get("command") or ()), *(spec.get("args") or ())]
        with open(self.folder / "log", "wb") as log:
            try:
                self.process = subprocess.Popen(
                    command, env={"PATH": os.environ["PATH"], **env}, cwd=spec.get("workingDir") or self.folder, stdout=log, stderr=log,
                    stdin=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                self.refused = ("StartError", str(error))
        self.started = _now()

    def end(self, grace: float, now: float) -> None:
        """One step of an orderly end."""
        if self.process is None or self.process.poll() is not None:
            return
        if not self.asked:
            self.asked = now
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGTERM)  # the first process alone, as container runtimes do
        elif now >= self.asked + grace:
            self.kill()

    def kill(self) -> None:
        """All processes of the container."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def status(self, port: int) -> dict[str, Any]:
        spec = self.pod["spec"]["containers"][0]
        found: dict[str, Any] = {"startTime": self.started or _now(), "hostIP": "127.0.0.1", "podIP": "127.0.0.1"}
        shown: dict[str, Any] = {"name": spec["name"], "image": spec["image"], "imageID": "", "ready": False, "restartCount": 0}
        if self.refused[0] and not self.waits:
            return found | {"phase": "Failed", "reason": self.refused[0], "message": self.refused[1]}
        if self.waits or self.process is None:
            state: dict[str, Any] = {"waiting": {"reason": self.refused[0] or "ContainerCreating", "message": self.refused[1]}}
            return found | {"phase": "Pending", "containerStatuses": [shown | {"state": state}]}
        code = self.process.poll()
        if code is None:
            state = {"running": {"startedAt": self.started}}
            return found | {"phase": "Running", "containerStatuses": [shown | {"state": state, "ready": True, "started": True}]}
        self.ended = self.ended or _now()
        code = 128 - code if code < 0 else code
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "startedAt": self.started}}
        state["terminated"]["finishedAt"] = self.ended
        return found | {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [shown | {"state": state}]}


@dataclass
class Kubelets:
    """All machines of this process."""

    home: Path
    port: int
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    containers: dict[str, Container] = field(default_factory=dict)  # by uid
    silent: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.client = ApiClient(find_access(str(self.home / "admin.kubeconfig")))
        self.nodes = {one["name"]: one for one in yaml.safe_load((self.home / "nodes.yaml").read_text())}
        self.events: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    # --- nodes ----------------------------------------------------------------------------------------------------------
    def announce(self, name: str, ready: str = "True") -> None:
        one = self.nodes[name]
        head = {"name": name, "labels": one["labels"]}
        with contextlib.suppress(ApiError):
            self.client.create(path_of("nodes"), {"metadata": head, "spec": {"taints": one["taints"]} if one.get("taints") else {}})
        status = {
            "capacity": one["room"], "allocatable": one["room"],
            "conditions": [{"type": "Ready", "status": ready, "reason": "Stand-in", "lastHeartbeatTime": _now()}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }  # fmt: skip
        self.client.merge(path_of("nodes", name=f"{name}") + "/status", {"status": status})

    def listen(self) -> None:
        """What the test says."""
        for line in sys.stdin:
            word, _, name = line.strip().partition(" ")
            if word == "back":
                self.silent.discard(name)
                self.announce(name)
            elif word == "mute":
                self.silent.add(name)
            elif word in ("cut", "kill"):
                self.silent.add(name)
                if word == "kill":
                    for one in self._on(name):
                        one.kill()
                with contextlib.suppress(ApiError):
                    self.announce(name, "Unknown")

    # --- pods -----------------------------------------------------------------------------------------------------------
    def follow(self) -> None:
        """Watch the pods of all nodes, from the beginning."""
        version = ""
        while True:
            with contextlib.suppress(GantlineError):
                if not version:
                    for items, newest in self.client.pages(path_of("pods"), fieldSelector="spec.nodeName!="):
                        version = newest
                        with self.lock:
                            self.events += [{"type": "ADDED", "object": one} for one in items]
                for event in self.client.watch(path_of("pods"), version, fieldSelector="spec.nodeName!="):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        with self.lock:
                            self.events.append(event)
            time.sleep(0.1)

    def work(self) -> None:
        while True:
            with self.lock:
                events, self.events = self.events, []
            for event in events:
                self.see(event)
            for one in list(self.containers.values()):
                if one.pod["spec"]["nodeName"] not in self.silent:
                    try:
                        self.look(one, time.monotonic())
                    except ApiError as error:
                        if error.code == 404:
                            self.drop(one)
                    except GantlineError:
                        time.sleep(0.2)
            time.sleep(_TICK)

    def see(self, event: Mapping[str, Any]) -> None:
        pod = event["object"]
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if node not in self.nodes:
            return
        known = self.containers.get(uid)
        if event["type"] == "DELETED":
            if known is not None and node not in self.silent:
                self.drop(known)
            return
        if known is not None:
            known.pod = pod
        elif pod["status"].get("phase") not in ("Succeeded", "Failed"):
            self.containers[uid] = one = Container(pod, self.home / "containers" / uid)
            one.refused = self._excess(one)
            if not one.refused[0] and not pod["metadata"].get("deletionTimestamp"):
                one.start()

    def look(self, one: Container, now: float) -> None:
        pod = one.pod["metadata"]
        if pod.get("deletionTimestamp"):
            one.end(float(pod.get("deletionGracePeriodSeconds") or 0), now)
        if one.process is not None and one.process.poll() is not None:
            one.kill()  # when the first process of a container ends, all do
        status = one.status(self.port)
        state = (status["phase"], status.get("reason"), str(status.get("containerStatuses", "")))
        if state != one.told:
            path = path_of("pods", pod["namespace"], pod["name"]) + "/status"
            self.client.merge(path, {"metadata": {"uid": pod["uid"]}, "status": status})
            one.told = state
        if pod.get("deletionTimestamp") and (one.is_over or one.process is None):
            self.client.delete(path_of("pods", pod["namespace"], pod["name"]), 0, pod["uid"])
            if not pod.get("finalizers"):
                self.drop(one)
            else:
                self.containers.pop(pod["uid"], None)

    def drop(self, one: Container) -> None:
        """The object is gone: so is the container."""
        one.kill()
        self.containers.pop(one.pod["metadata"]["uid"], None)

    def _excess(self, new: Container) -> tuple[str, str]:
        """Why a kubelet does not admit a pod: its node has not as much left as the pod requests."""
        node = new.pod["spec"]["nodeName"]
        held = [one for one in self._on(node) if not one.is_over]
        for name, room in self.nodes[node]["room"].items():
            if name == "pods":
                continue
            used = sum(_requested(one.pod, name) for one in held)
            if used > amount(room) + 1e-6:
                return f"OutOf{name}", f"Node didn't have enough resource: {name}"
        return "", ""

    def _on(self, node: str) -> list[Container]:
        return [one for one in self.containers.values() if one.pod["spec"]["nodeName"] == node]


def _requested(pod: Mapping[str, Any], name: str) -> float:
    rooms = [one.get("resources") or {} for one in pod["spec"]["containers"]]
    return sum(amount((room.get("requests") or {}).get(name) or (room.get("limits") or {}).get(name) or 0) for room in rooms)


def _serve_logs(kubelets: Kubelets) -> None:
    class Logs(http.server.BaseHTTPRequestHandler):
        """``/containerLogs/NAMESPACE/POD/CONTAINER``, as the API server asks for it."""

        def do_GET(self) -> None:
            url = urllib.parse.urlsplit(self.path)
            key = "/".join(url.path.split("/")[2:4])
            found = [one for one in list(kubelets.containers.values()) if one.key == key and (one.folder / "log").exists()]
            self.send_response(200 if found else 404)
            self.end_headers()
            if not found:
                return
            follow = "follow=true" in url.query
            with open(found[-1].folder / "log", "rb") as log, contextlib.suppress(OSError):
                while True:
                    over = found[-1].is_over
                    self.wfile.write(log.read())
                    self.wfile.flush()
                    if over or not follow:
                        return
                    time.sleep(0.05)

        def log_message(self, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", kubelets.port), Logs)
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trust.load_cert_chain(kubelets.home / "kubelet.pem")
    server.socket = trust.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def main() -> None:
    kubelets = Kubelets(Path(sys.argv[1]), int(sys.argv[2]))

    def leave(number: int, frame: object) -> None:
        for one in list(kubelets.containers.values()):
            one.kill()
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=_serve_logs, args=(kubelets,), daemon=True).start()
    for name in kubelets.nodes:
        kubelets.announce(name)
    threading.Thread(target=kubelets.follow, daemon=True).start()
    threading.Thread(target=kubelets.listen, daemon=True).start()
    kubelets.work()


if __name__ == "__main__":
    main()
