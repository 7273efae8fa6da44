"""Clusters given by value, by short specification or by YAML file."""

from __future__ import annotations

from pathlib import Path

from gantline.core.cluster import Cluster
from gantline.core.cluster_spec import parse_cluster, parse_cluster_yaml
from gantline.core.errors import NotFoundError, UsageError


def read_cluster(given: Cluster | str | Path) -> Cluster:
    """The cluster that a value, a specification such as ``v100:4x8`` or a YAML file describes."""
    if isinstance(given, Cluster):
        cluster = given
    elif isinstance(given, Path) or str(given).endswith((".yaml", ".yml")):
        path = Path(given)
        try:
            cluster = parse_cluster_yaml(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            raise NotFoundError("no such file", where=str(path), fix="check the path given as --cluster") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot be read: {error}", where=str(path)) from None
    elif isinstance(given, str):
        cluster = parse_cluster(given)
    else:
        fix = "write '8x4' (nodes x GPUs), name a YAML file, or give a Cluster"
        raise UsageError(f"{given!r:.60} is no cluster", where="cluster", fix=fix)
    if not any(node.gpus or node.cpus for node in cluster.nodes):
        raise UsageError("the cluster has neither GPUs nor CPUs", where=f"cluster '{cluster}'", fix="give its nodes some")
    return cluster
