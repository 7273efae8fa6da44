"""A run whose devices differ: the model of their speeds."""

from __future__ import annotations

from typing import Any

from gantline.core.device_speeds import DeviceSpeeds
from gantline.core.errors import RefusedError, near
from gantline.core.tables import Tables
from gantline.engine.assembly.rules import RunRules
from gantline.engine.assembly.spec import RunSpec
from gantline.traces.trace import Trace


def use_device_speeds(spec: RunSpec, rules: RunRules, jobs: Trace, tables: Tables) -> Any:
    """The performance model; an option that would be ignored is refused."""
    speeds = rules.facts.device_speeds
    if speeds is None and spec.locality != 1.0:
        raise RefusedError("a locality penalty without speeds of devices", where="--locality", fix="give --device-speeds FILE.csv")
    classes = classes_of(jobs, speeds)
    if speeds is None:
        return tables.performance
    if tables.performance is not None:
        raise RefusedError("another model of speeds is in use", where="--device-speeds", fix="leave one of them out")
    from gantline.models.placement_speeds import VariableDevices

    return VariableDevices(speeds, spec.locality, dict(zip(tables.ids, classes)))


def classes_of(jobs: Trace, speeds: DeviceSpeeds | None) -> list[str]:
    """The class of each job, from the trace's column `speed_class`; empty cells mean the first class of the table."""
    if speeds is None:
        return []
    first = speeds.classes[0]
    named = [text or first for text in jobs.texts("speed_class")] if "speed_class" in jobs.columns else [first] * len(jobs)
    for row, name in enumerate(named):
        if name not in speeds.slowdown:
            what = f"job '{jobs.texts('job')[row]}' has class '{name}', which the table of speeds does not"
            raise RefusedError(what, where="--device-speeds", fix=f"{near(name, speeds.classes)}; it has {', '.join(speeds.classes)}")
    return named
