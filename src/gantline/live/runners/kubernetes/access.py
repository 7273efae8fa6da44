"""Where a cluster's API server is and who we are there: from a kubeconfig file, or from within a pod."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

import yaml

from gantline.core.errors import NotFoundError, UnreachableError, UsageError, near

Object: TypeAlias = dict[str, Any]  # an object of the API as a plain value
Shown: TypeAlias = Mapping[str, Any]  # one that is only read
_IN_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLUGIN_SECONDS = 60.0


@dataclass(frozen=True)
class ClusterAccess:
    """One API server, and how to be believed there."""

    server: str  # https://HOST:PORT
    namespace: str = "default"
    trust: ssl.SSLContext | None = None
    token: str = ""
    token_file: Path | None = None  # renewed by the kubelet: read again for every connection
    plugin: Shown | None = field(default=None, compare=False)  # a program that prints a token

    @property
    def host(self) -> str:
        return urlsplit(self.server).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.server)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def path(self) -> str:
        """What stands before every path, where the server is behind a proxy."""
        return urlsplit(self.server).path.rstrip("/")

    def bearer(self) -> str:
        """The token to send now; empty: a certificate says who we are."""
        if self.token_file is not None:
            return self.token_file.read_text(encoding="ascii").strip()
        return _token_of(self.plugin) if self.plugin is not None else self.token


def path_of(kind: str, namespace: str = "", name: str = "", group: str = "") -> str:
    """Of objects (``pods``), an object, or what belongs to one (name ``a/binding``); `group` with its version: ``apps/v1``."""
    root = f"/apis/{group}" if group else "/api/v1"
    space = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{space}/{kind}" + (f"/{quote(name)}" if name else "")


def find_access(kubeconfig: str = "", context: str = "", namespace: str = "") -> ClusterAccess:
    """As `kubectl` finds it: a given file, else ``$KUBECONFIG``, else ``~/.kube/config``, else the service account of this pod."""
    named = kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    usual = Path("~/.kube/config").expanduser()
    if not named and not context and not usual.exists():
        if (_IN_POD / "token").exists():
            return _in_pod(namespace)
        what = "no cluster is named: there is no ~/.kube/config, KUBECONFIG is not set, and this is not a pod"
        raise UsageError(what, where="--kubeconfig", fix="give --kubeconfig FILE")
    return _from_file(Path(named).expanduser() if named else usual, context, namespace)


def _in_pod(namespace: str) -> ClusterAccess:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    own = (_IN_POD / "namespace").read_text(encoding="utf-8").strip()
    trust = ssl.create_default_context(cafile=str(_IN_POD / "ca.crt"))
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return ClusterAccess(server, namespace or own, trust, token_file=_IN_POD / "token")


def _from_file(path: Path, context: str, namespace: str) -> ClusterAccess:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise NotFoundError(f"cannot be read: {error.strerror}", where=f"--kubeconfig {path}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"is not YAML: {str(error).splitlines()[0]}", where=f"--kubeconfig {path}") from None
    where = f"--kubeconfig {path}"
    if not isinstance(config, dict):
        raise UsageError("is no kubeconfig: it has no clusters and no users", where=where)
    chosen = context or str(config.get("current-context") or "")
    if not chosen:
        raise UsageError("it has no current context", where=where, fix="give --context NAME")
    scene = _named(config, "contexts", "context", chosen, "--context" if context else where)
    cluster = _named(config, "clusters", "cluster", str(scene.get("cluster", "")), where)
    user = _named(config, "users", "user", str(scene.get("user", "")), where) if scene.get("user") else {}
    server = str(cluster.get("server", ""))
    if not server.startswith(("https://", "http://")):
        raise UsageError(f"server '{server}' of cluster '{scene.get('cluster')}' is no address", where=where, fix="write https://HOST:PORT")
    trust = _trust(cluster, user, path.parent, where) if server.startswith("https://") else None
    token_file = path.parent / str(user["tokenFile"]) if user.get("tokenFile") else None
    space = namespace or str(scene.get("namespace") or "default")
    return ClusterAccess(server, space, trust, str(user.get("token", "")), token_file, user.get("exec"))


def _named(config: Shown, kind: str, part: str, name: str, where: str) -> Shown:
    """One entry of a kubeconfig's lists."""
    entries = {str(one.get("name")): one.get(part) or {} for one in config.get(kind) or () if isinstance(one, dict)}
    if name not in entries:
        raise NotFoundError(f"no {part} '{name}' in it", where=where, fix=near(name, entries))
    found: Shown = entries[name]
    return found


def _trust(cluster: Shown, user: Shown, folder: Path, where: str) -> ssl.SSLContext:
    """Which certificates are believed, and our own. Files of a kubeconfig are named relative to it."""
    try:
        authority = _content(cluster, "certificate-authority", folder)
        trust = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        certificate, key = _content(user, "client-certificate", folder), _content(user, "client-key", folder)
        if certificate and key:
            with tempfile.NamedTemporaryFile(prefix="gantline-", suffix=".pem") as file:  # the library reads certificates from files only
                file.write(certificate + b"\n" + key)
                file.flush()
                trust.load_cert_chain(file.name)
    except (OSError, ValueError, ssl.SSLError) as error:
        raise UsageError(f"its certificates cannot be used: {error}", where=where) from None
    return trust


def _content(entry: Shown, name: str, folder: Path) -> bytes:
    if entry.get(f"{name}-data"):
        return base64.b64decode(str(entry[f"{name}-data"]))
    return (folder / str(entry[name])).read_bytes() if entry.get(name) else b""


def _token_of(plugin: Shown) -> str:
    """What a credential plugin prints: managed clusters have one."""
    command = [str(plugin.get("command", "")), *map(str, plugin.get("args") or ())]
    env = {**os.environ, **{str(one["name"]): str(one["value"]) for one in plugin.get("env") or ()}}
    try:
        found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_PLUGIN_SECONDS, check=True)
        return str(json.loads(found.stdout)["status"]["token"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise UnreachableError(f"the credential plugin gave no token: {error}", where=" ".join(command)) from None
