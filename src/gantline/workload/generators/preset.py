"""A preset is a complete set of settings with a name; any setting can still be changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gantline.workload.generators.generic import generate_workload
from gantline.workload.generators.settings import WorkloadSettings
from gantline.workload.trace import Trace

Generator = Callable[[int, Mapping[str, object]], Trace]


def preset(name: str, base: WorkloadSettings) -> Generator:
    """The generator that draws from these settings, with those that are given put on top."""

    def generator(seed: int, given: Mapping[str, object]) -> Trace:
        return generate_workload(WorkloadSettings.read(given, base), seed, name)

    generator.__doc__ = f"The generator called ``{name}``."
    return generator
