"""Vectors of Voda's own answers as snapshots."""

from __future__ import annotations

import json
from typing import Any

from tests.simulator.references import reference

NAMES = {
    "FIFO": "voda.fifo",
    "ElasticFIFO": "voda.elastic_fifo",
    "SRJF": "voda.srjf",
    "ElasticSRJF": "voda.elastic_srjf",
    "Tiresias": "voda.tiresias",
    "ElasticTiresias": "voda.elastic_tiresias",
    "FfDLOptimizer": "voda.ffdl",
    "AFS-L": "voda.afs_l",
}


def vectors() -> list[dict[str, Any]]:
    """All recorded cases."""
    return [json.loads(line) for line in reference("voda-allox/voda_algorithm_vectors.jsonl").read_text().splitlines()]


def snapshot_of(vector: dict[str, Any]) -> dict[str, Any]:
    """One case as a snapshot file."""
    return {"now": 0.0, "cluster": f"gpu:1x{vector['total_gpus']}", "jobs": [job_of(job) for job in vector["jobs"]]}


def job_of(job: dict[str, Any]) -> dict[str, Any]:
    options = [{"type": "gpu", "gpus": workers, "rate": rate} for workers, rate in enumerate(job["speedup"]) if workers]
    found = {"id": job["name"], "arrival": job["submit_s"], "gpus": job["num_proc"], "min_gpus": job["min"], "max_gpus": job["max"]}
    found |= {"priority": -job["priority"], "estimate": job["remaining_s"], "options": options}
    return found | ({"first_start": job["first_start_s"]} if job["first_start_s"] >= 0 else {})


def grants_of(plan: Any, ids: list[str]) -> dict[str, int]:
    """GPUs per job of a plan, zero for those it does not name."""
    given = dict.fromkeys(ids, 0)
    return given | {ids[item.job]: item.gpus for item in plan.assignments}
