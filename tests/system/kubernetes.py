"""A real API server and etcd on loopback, with stand-ins for kubelets (`kubelets.py`) that run pods' commands as local processes."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import trustme
import yaml

from gantline.core.errors import GantlineError
from gantline.live.runners.kubernetes.access import find_access, path_of
from gantline.live.runners.kubernetes.client import ApiClient, ApiError

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0  # seconds; a quiet machine needs nine


def api_server() -> Path:
    """The program that `.ci/kube-apiserver` builds."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gantline" / "kubernetes" / "kube-apiserver-2"


def missing() -> str:
    """What keeps such a cluster from being started here; empty: nothing."""
    if shutil.which("etcd") is None:
        return "etcd is not installed"
    return "" if api_server().exists() else "no kube-apiserver was built: run .ci/kube-apiserver"


def node(name: str, cpus: int = 4, gpus: int = 0, product: str = "", **labels: str) -> dict[str, Any]:
    """A machine as a kubelet would announce it."""
    room = {"cpu": str(cpus), "memory": "16Gi", "pods": "110"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    marks = {"kubernetes.io/hostname": name} | ({"nvidia.com/gpu.product": product} if product else {}) | labels
    return {"name": name, "room": room, "labels": marks}


@dataclass
class KubernetesCluster:
    """etcd, one API server, and one process that stands for all kubelets."""

    home: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.ports = _free_ports(4)
        self.authority = trustme.CA()
        self._write_identities()
        self.client = ApiClient(find_access(str(self.kubeconfig)))

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.home / "admin.kubeconfig"

    def kubeconfig_of(self, token: str, namespace: str = "default", port: int = 0) -> Path:
        """One for the bearer of a token; `port` is of a proxy."""
        path = self.home / f"{token}{port or ''}.kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{port or self.ports[1]}", "certificate-authority": str(self.home / "ca.crt")}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "here", "clusters": [{"name": "here", "cluster": cluster}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": token, "namespace": namespace}}],
            "users": [{"name": token, "user": {"token": token}}],
        }  # fmt: skip
        path.write_text(yaml.safe_dump(config))
        return path

    def _write_identities(self) -> None:
        self.authority.cert_pem.write_to_path(str(self.home / "ca.crt"))
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
        for name in ("server", "kubelet"):
            made = self.authority.issue_cert("127.0.0.1", "localhost", common_name=name, not_after=end)
            made.private_key_and_cert_chain_pem.write_to_path(str(self.home / f"{name}.pem"))
        (self.home / "tokens.csv").write_text('admin,admin,1,"system:masters"\ngantline,gantline,2\n')
        self.kubeconfig.write_bytes(self.kubeconfig_of("admin").read_bytes())

    # --- processes ------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start etcd and the API server, and wait until it is ready."""
        etcd, peer = (f"http://127.0.0.1:{port}" for port in (self.ports[0], self.ports[2]))
        self._run(
            "etcd", "etcd", "--data-dir", str(self.home / "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync",
        )  # fmt: skip
        self.start_server()

    def start_server(self, wait: bool = True) -> None:
        pem = str(self.home / "server.pem")
        options = {
            "etcd-servers": f"http://127.0.0.1:{self.ports[0]}", "bind-address": "127.0.0.1", "secure-port": str(self.ports[1]),
            "advertise-address": "127.0.0.1", "tls-cert-file": pem, "tls-private-key-file": pem,
            "client-ca-file": str(self.home / "ca.crt"),
            "token-auth-file": str(self.home / "tokens.csv"), "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc", "service-account-signing-key-file": pem,
            "service-account-key-file": pem, "service-cluster-ip-range": "10.0.0.0/24", "disable-admission-plugins": "ServiceAccount",
            "kubelet-client-certificate": pem, "kubelet-client-key": pem, "kubelet-certificate-authority": str(self.home / "ca.crt"),
            "kubelet-preferred-address-types": "InternalIP", "endpoint-reconciler-type": "none",
        }  # fmt: skip
        self._run("server", str(api_server()), *(f"--{name}={value}" for name, value in options.items()))
        if wait:
            wait_for(self._is_ready, "API server")
            for space in ("default", "kube-node-lease"):
                wait_for(lambda space=space: self._is_there(path_of("namespaces", name=space)), f"namespace {space}")

    def start_kubelets(self, nodes: list[dict[str, Any]]) -> None:
        """Machines join; each is ready when this returns."""
        (self.home / "nodes.yaml").write_text(yaml.safe_dump(nodes))
        self._run("kubelets", sys.executable, "-m", "tests.system.kubelets", str(self.home), str(self.ports[3]), stdin=subprocess.PIPE)
        wait_for(lambda: sorted(self.ready()) == sorted(one["name"] for one in nodes), "ready nodes")

    def tell_kubelets(self, words: str) -> None:
        """``cut NODE``: it is silent and its pods go on; ``kill NODE``: pods, too, are gone; ``back NODE``: it reports again."""
        pipe = self.processes["kubelets"].stdin
        pipe.write(f"{words}\n".encode())
        pipe.flush()

    def stop_server(self) -> None:
        self._end("server", signal.SIGKILL)

    def stop(self) -> None:
        for name in ("kubelets", "server", "etcd"):
            self._end(name, signal.SIGTERM)

    # --- what is there --------------------------------------------------------------------------------------------------
    def ready(self) -> list[str]:
        """Nodes that are ready."""
        found = self.client.get(path_of("nodes"))["items"]
        return [one["metadata"]["name"] for one in found if _condition(one, "Ready") == "True"]

    def pods(self, namespace: str = "default") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get(path_of("pods", namespace))["items"]
        return found

    def pod(self, name: str, node: str = "", cpu: str = "1", gpus: int = 0, command: str = "sleep 1000", **spec: Any) -> dict[str, Any]:
        """A pod of another user, on a node that it names itself."""
        room: dict[str, Any] = {"requests": {"cpu": cpu}} | ({"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {})
        one = {"name": "main", "image": "any", "command": ["/bin/sh", "-c", command], "resources": room}
        body = {"containers": [one], "restartPolicy": "Never", "schedulerName": "another", **({"nodeName": node} if node else {}), **spec}
        return self.client.create(path_of("pods", "default"), {"metadata": {"name": name}, "spec": body})

    def answers(self) -> bool:
        """Whether the API server answers a request, ready or not."""
        return self._is_there("/version")

    def _is_ready(self) -> bool:
        assert self.processes["server"].poll() is None, (self.home / "server.out").read_text()[-2000:]
        try:
            return self.client.read("/readyz") == b"ok"
        except GantlineError:
            return False

    def _is_there(self, path: str) -> bool:
        try:
            return bool(self.client.get(path))
        except GantlineError:
            return False

    def _run(self, name: str, *command: str, **more: Any) -> None:
        log = (self.home / f"{name}.out").open("ab")
        env = {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64", "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
        self.processes[name] = subprocess.Popen(command, env=env, stdout=log, stderr=log, **({"stdin": subprocess.DEVNULL} | more))

    def _end(self, name: str, how: signal.Signals) -> None:
        one = self.processes.pop(name, None)
        if one is None:
            return
        one.send_signal(how)
        try:
            one.wait(20)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()


@contextmanager
def kubernetes_cluster(home: Path) -> Iterator[KubernetesCluster]:
    """A control plane without nodes."""
    cluster = KubernetesCluster(home)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def empty(cluster: KubernetesCluster) -> None:
    """Remove all pods and the lease, as an operator would."""
    for pod in cluster.pods():
        path = path_of("pods", "default", pod["metadata"]["name"])
        unless_gone(partial(cluster.client.merge, path, {"metadata": {"finalizers": None}}))
        unless_gone(partial(cluster.client.delete, path, 1))
    wait_for(lambda: not cluster.pods(), "end of all pods")
    unless_gone(partial(cluster.client.delete, path_of("leases", "default", "gantline", "coordination.k8s.io/v1")))


def unless_gone(act: Callable[[], object]) -> None:
    """Do something to an object, if it is still there."""
    try:
        act()
    except ApiError as error:
        if error.code != 404:
            raise


def wait_for(true: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait until something holds; what it was comes back."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"no {what} within {seconds:g} s"
        time.sleep(0.05)
    return found


def _condition(one: Mapping[str, Any], kind: str) -> str:
    return next((str(each["status"]) for each in one["status"].get("conditions") or () if each["type"] == kind), "")


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()
