"""The rights that a service uses, asked for before it starts: what is missing is said by verb and resource.

`deploy/kubernetes/rbac.yaml` grants exactly these.
"""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.errors import RefusedError
from gantline.live.kubernetes.client import ApiClient
from gantline.live.kubernetes.guests import KINDS
from gantline.live.kubernetes.objects import path_of

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
