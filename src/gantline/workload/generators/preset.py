"""A preset is a complete set of settings with a name; any setting can still be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gantline.workload.generators.generic import generate_workload
from gantline.workload.generators.settings import WorkloadSettings
from gantline.workload.trace import Trace


@dataclass(frozen=True)
class Preset:
    """A generator that draws from the settings of `base`, with those that are given put on top."""

    name: str
    base: WorkloadSettings

    def __call__(self, seed: int, given: Mapping[str, object]) -> Trace:
        return generate_workload(WorkloadSettings.read(given, self.base), seed, self.name)
