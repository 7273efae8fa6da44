"""Environments for learned policies: Gymnasium steps that are decisions of the scheduler (extra ``learn``).

The names below are imported when first used: the features that a learned policy reads need no Gymnasium.
"""

from __future__ import annotations

_EXPORTS = {
    "ClusterEnv": "gantline.lab.environment.environment",
    "make_vec": "gantline.lab.environment.environment",
    "JOB_FEATURES": "gantline.lab.environment.actions",
    "CLUSTER_FEATURES": "gantline.lab.environment.actions",
    "job_features": "gantline.lab.environment.actions",
    "cluster_features": "gantline.lab.environment.actions",
}
__all__ = [*_EXPORTS]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'gantline.lab.environment' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_EXPORTS[name]), name)
