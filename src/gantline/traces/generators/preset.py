"""A preset is a complete set of settings with a name; any setting can still be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gantline.traces.generators.generic import generate_workload
from gantline.traces.generators.settings import WorkloadSettings
from gantline.traces.trace import Trace


@dataclass(frozen=True)
class Preset:
    """A generator that draws from the settings of `base`, with those that are given put on top."""

    name: str
    base: WorkloadSettings

    def __call__(self, seed: int, given: Mapping[str, object]) -> Trace:
        return generate_workload(WorkloadSettings.read(given, self.base), seed, self.name)
