"""What a machine has for jobs to book: device memory is that of the smallest GPU of its type, where NVML finds any."""

from __future__ import annotations

import pytest

from gantline.live.runners.local import devices as capacity
from gantline.live.runners.local.devices import FoundGpu, declared, with_capacity


def test_gpus_have_the_memory_that_nvml_says_and_cpu_slots_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [FoundGpu("h200", "GPU-1", 0, 140.0), FoundGpu("h200", "GPU-2", 1, 139.5), FoundGpu("a100", "GPU-3", 2, 80.0)]
    monkeypatch.setattr(capacity, "gpus_found", lambda: found)

    nodes = with_capacity(declared("h200:2,a100:1,v100:1,cpu:4")).cluster.nodes

    assert {node.name: node.device_memory for node in nodes} == {"h200": 139.5, "a100": 80.0, "v100": 0.0, "cpu": 0.0}
