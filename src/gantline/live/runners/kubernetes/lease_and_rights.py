"""One scheduler for a cluster: a Lease that the service holds by the name of its home, and renews.

A service that was killed and comes back with the same home holds it still. Another one is refused while the lease is renewed.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from gantline.core.errors import GantlineError, RefusedError
from gantline.live.host import Lease
from gantline.live.runners.kubernetes.access import Object, path_of
from gantline.live.runners.kubernetes.client import ApiClient, ApiError
from gantline.live.runners.kubernetes.workloads import KINDS

_GROUP, _NAME = "coordination.k8s.io/v1", "gantline"
_SECONDS = 15  # without renewal after which it is another's to take
_EVERY = 5.0


class LostLeaseError(GantlineError):
    """Another scheduler has taken the lease."""

    exit_code = 4


class Leadership:
    """The lease, in a thread of its own once it is held."""

    def __init__(
        self, client: ApiClient, namespace: str, home: str, lost: Callable[[LostLeaseError], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.client, self.home, self._lost = client, f"{home}@{socket.gethostname()}", lost
        self._path = path_of("leases", namespace, _NAME, _GROUP)
        self._all = path_of("leases", namespace, group=_GROUP)
        self._key = home
        self._lease = Lease(_SECONDS, clock)
        self._lease.end()
        self._held: Object = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.renewals = 0  # how often it was written, for those who count

    @property
    def is_held(self) -> bool:
        """Whether it was renewed of late: only then may anything be written."""
        return not self._lease.is_over

    def acquire(self) -> None:
        """Take it, or refuse to start beside the scheduler that holds it; one that has fallen silent is watched for a while first."""
        found = self._read()
        if found is not None and not self._is_ours(found) and found["spec"].get("holderIdentity"):
            seen = found["spec"].get("renewTime")
            if self._is_fresh(found):
                self._refuse(found)
            end = time.monotonic() + float(found["spec"].get("leaseDurationSeconds") or _SECONDS)
            while time.monotonic() < end:
                time.sleep(1.0)
                found = self._read()
                if found is not None and found["spec"].get("renewTime") != seen:
                    self._refuse(found)
        self._take(found)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._renew, name="gantline-lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """The service ends: the next one, whichever home it has, need not wait."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self.is_held:
            with contextlib.suppress(GantlineError):  # it runs out by itself
                self.client.replace(self._path, {**self._held, "spec": {**self._held["spec"], "holderIdentity": ""}})

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _is_ours(self, lease: Object) -> bool:
        return str(lease["spec"].get("holderIdentity") or "").partition("@")[0] == self._key

    def _is_fresh(self, lease: Object) -> bool:
        renewed = str(lease["spec"].get("renewTime") or "1970-01-01T00:00:00Z").replace("Z", "+00:00")
        return time.time() + self.client.skew < datetime.fromisoformat(renewed).timestamp() + _SECONDS

    def _refuse(self, lease: Object) -> None:
        holder = lease["spec"]["holderIdentity"]
        what = f"another scheduler holds the lease '{_NAME}' of this namespace: {holder}"
        raise RefusedError(what, where="--executor kubernetes", fix="stop that one, or use its home")

    def _read(self) -> Object | None:
        try:
            return self.client.get(self._path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def _take(self, found: Object | None) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.home, "leaseDurationSeconds": _SECONDS, "renewTime": now}
        if found is None:
            value = {"apiVersion": _GROUP, "kind": "Lease", "metadata": {"name": _NAME}, "spec": {**spec, "acquireTime": now}}
            self._held = self.client.create(self._all, value)
        else:
            mine = found["spec"].get("holderIdentity") == self.home
            taken = {} if mine else {"acquireTime": now}
            self._held = self.client.replace(self._path, {**found, "spec": {**found["spec"], **spec, **taken}})
        self._lease.renew()
        self.renewals += 1

    def _renew(self) -> None:
        while not self._stop.wait(_EVERY if self.is_held else 0.5):
            try:
                self._take(self._held)
            except ApiError as error:
                try:
                    found = self._read() if error.code in (404, 409) else None
                    if found is not None and not self._is_ours(found):
                        holder = found["spec"].get("holderIdentity")
                        self._lost(LostLeaseError(f"another scheduler has taken the lease: {holder}", where="lease"))
                        return
                    self._held = found or self._held
                    if found is None and error.code == 404:
                        self._take(None)
                except GantlineError:
                    continue
            except GantlineError:
                continue  # the server is away: nobody else can take it either


# The rights that a service uses, asked for before it starts: what is missing is said by verb and resource.
#
# `deploy/kubernetes/rbac.yaml` grants exactly these.

_REVIEWS = "authorization.k8s.io/v1"


class Right(NamedTuple):
    """A verb on a resource, in the namespace of jobs or in the whole cluster."""

    verb: str
    resource: str
    group: str = ""
    cluster_wide: bool = False

    @property
    def said(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


RIGHTS = (
    *(Right(verb, kind, cluster_wide=True) for kind in ("nodes", "pods") for verb in ("list", "watch")),
    *(Right(verb, "pods") for verb in ("create", "patch", "delete")),
    Right("create", "pods/binding"),
    Right("get", "pods/log"),
    *(Right(verb, "services") for verb in ("create", "patch", "delete")),
    *(Right(verb, *kind.resource) for kind in KINDS for verb in ("get", "list", "watch", "patch")),
    *(Right(verb, "leases", "coordination.k8s.io") for verb in ("get", "create", "update")),
)


def check_rights(client: ApiClient, namespace: str) -> None:
    """Refuse to start where a right is missing, and name all of them that are."""
    missing = [right for right in RIGHTS if not _has(client, right, namespace)]
    if missing:
        space = [one.said for one in missing if not one.cluster_wide]
        wide = [one.said for one in missing if one.cluster_wide]
        parts = [f"{', '.join(space)} in namespace {namespace}"] if space else []
        parts += [f"{', '.join(wide)} in all namespaces"] if wide else []
        raise RefusedError(f"may not {' and may not '.join(parts)}", where=client.access.server, fix="apply deploy/kubernetes/rbac.yaml")


def _has(client: ApiClient, right: Right, namespace: str) -> bool:
    resource, _, sub = right.resource.partition("/")
    asked = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": sub}
    asked |= {} if right.cluster_wide else {"namespace": namespace}
    review = {"apiVersion": _REVIEWS, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
    answer = client.create(path_of("selfsubjectaccessreviews", group=_REVIEWS), review)
    return bool(answer["status"].get("allowed"))
