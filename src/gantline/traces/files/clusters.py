"""Clusters given by value, by short specification, by YAML file or by a CSV file of virtual clusters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gantline.core.cluster import Cluster
from gantline.core.cluster_spec import grown, parse_cluster, parse_cluster_yaml
from gantline.core.errors import NotFoundError, UsageError
from gantline.core.nodes import NO_BANDWIDTHS

_FILES = (".yaml", ".yml", ".csv")


def is_cluster_file(text: str) -> bool:
    """Whether this names a file rather than writing a cluster out."""
    return text.endswith(_FILES)


def read_cluster(given: Cluster | str | Path) -> Cluster:
    """The cluster that a value, a specification such as ``v100:4x8`` or a file (YAML, CSV of virtual clusters) describes."""
    if isinstance(given, Cluster):
        cluster = given
    elif str(given).endswith(".csv"):
        from gantline.traces.files.virtual_clusters import read_virtual_clusters  # polars

        cluster = read_virtual_clusters(Path(given))
    elif isinstance(given, Path) or is_cluster_file(str(given)):
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
        fix = "write '8x4' (nodes x GPUs), name a file (YAML or CSV), or give a Cluster"
        raise UsageError(f"{given!r:.60} is no cluster", where="cluster", fix=fix)
    if not any(node.gpus or node.cpus for node in cluster.nodes):
        raise UsageError("the cluster has neither GPUs nor CPUs", where=f"cluster '{cluster}'", fix="give its nodes some")
    return cluster


def grown_cluster(text: str, share: float) -> str:
    """The specification of a cluster, given as one or as a file, with so much more nodes of every kind."""
    if not is_cluster_file(text):
        return grown(text, share)
    cluster = read_cluster(text)
    if cluster.links or cluster.bandwidths != NO_BANDWIDTHS:
        fix = "name the larger cluster yourself: --also FILE"
        raise UsageError("how a larger one is wired is not known", where=f"cluster '{text}'", fix=fix)
    return grown(short_form(cluster), share)


def short_form(cluster: Cluster) -> str:
    """The specification of nodes like those of the cluster, group by group; names, slices and links are not part of it."""
    groups = Counter((node.type, node.gpus, node.cpus, node.memory, node.storage, node.device_memory, node.rack) for node in cluster.nodes)
    parts = []
    for (kind, gpus, *amounts, rack), count in groups.items():
        beside = "".join(f"/{amount:.10g}{unit}" for amount, unit in zip(amounts, "cgsd") if amount) + (f"@{rack}" if rack else "")
        parts.append(f"{kind}:{count}x{gpus}{beside}")
    return ",".join(parts)
