"""How fast two jobs are that share their devices: measured pairs of configurations, relative to running alone.

A configuration is what a job trains: network, data set, batch size and precision as one key, ``ResNet18/CIFAR-10/32/amp``.
"""

from __future__ import annotations

_PRECISION = {"0": "fp32", "1": "amp", "0.0": "fp32", "1.0": "amp", "": "fp32", "false": "fp32", "true": "amp"}


def configuration_key(network: str, dataset: str, batch: str, amp: str) -> str:
    """One key for what a job trains."""
    return "/".join((network, dataset, batch.removesuffix(".0"), _PRECISION.get(amp.lower(), amp)))
