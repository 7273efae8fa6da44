"""A run whose devices differ: the model of their speeds, and the placement rule that picks among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gantline.assembly.rules import RunRules
from gantline.assembly.spec import RunSpec
from gantline.core import columns as c
from gantline.core.device_speeds import DeviceSpeeds
from gantline.core.errors import RefusedError, near
from gantline.core.tables import Tables
from gantline.placement.rules import PlacementRule
from gantline.workload.trace import Trace


def use_device_speeds(spec: RunSpec, rules: RunRules, jobs: Trace, tables: Tables) -> tuple[PlacementRule, Any]:
    """The rule with its picker, and the performance model; an option that would be ignored is refused."""
    rule, speeds = rules.placement, rules.facts.device_speeds
    if speeds is None and spec.locality != 1.0:
        raise RefusedError("a locality penalty without speeds of devices", where="--locality", fix="give --device-speeds FILE.csv")
    classes = classes_of(jobs, speeds)
    if rule.picks:
        if (tables.options.F[c.O_CPUS] > 0).any() or (tables.options.F[c.O_MEMORY] > 0).any():
            what = f"placement '{rule.name}' picks devices and does not count CPUs and memory, which jobs of this run ask for"
            raise RefusedError(what, where="--placement", fix="use another placement, or a trace without cpus and memory")
        if rules.stops.min_run > 0 and not rule.name.endswith("-sticky"):
            what = f"placement '{rule.name}' moves gangs that run, and a minimum run forbids that"
            raise RefusedError(what, where="--min-run", fix=f"use --placement {rule.name}-sticky")
        from gantline.placement.picking import DevicePicker

        rule = replace(rule, picker=DevicePicker.of(rule.name, tables.cluster, speeds, spec.locality, classes))
    if speeds is None:
        return rule, tables.performance
    if tables.performance is not None:
        raise RefusedError("another model of speeds is in use", where="--device-speeds", fix="leave one of them out")
    from gantline.performance.variable_devices import VariableDevices

    return rule, VariableDevices(speeds, spec.locality, dict(zip(tables.ids, classes)))


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
