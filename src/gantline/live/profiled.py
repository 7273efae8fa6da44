"""Writes what profiles have measured of a job into its specification: its options with their speeds, and how long it takes."""

from __future__ import annotations

from gantline.core.errors import RefusedError
from gantline.live import amounts
from gantline.live.spec import JobSpec
from gantline.live.spec_parts import Way
from gantline.models.profiles.bundle import Bundle
from gantline.traces.files.speeds import read_bundle


def hinted(spec: JobSpec) -> JobSpec:
    """The same job with the values of the file that it names under `model.hint`; the name of the file is left out."""
    if spec.model is None or not spec.model.hint:
        return spec
    known = profiled(spec, read_bundle(spec.model.hint))
    return known.model_copy(update={"model": spec.model.model_copy(update={"hint": ""})})


def profiled(spec: JobSpec, bundle: Bundle, worst: float = 12.0) -> JobSpec:
    """The same job with what was measured of its model: types, best first, with rates over the best, and an estimate.

    Types that the job names itself stay the only ones; one on which it is more than ``worst`` times slower than on its best is not
    offered. The estimate needs the number of steps: `progress.total`, or what the profile says.
    """
    name = spec.model.family if spec.model is not None else spec.name
    profile = bundle[name]
    size = spec.sizes[0]
    paces = {kind: speed.line.seconds for (kind, gpus), speed in profile.alone.items() if gpus == size}
    named = {kind for kind in (amounts.devices(way.accelerators or 1, "accelerators")[0] for way in spec.resources.ways) if kind}
    ways = sorted((seconds, kind) for kind, seconds in paces.items() if not named or kind in named)
    if not ways:
        where = " or ".join(sorted(named)) or "any type"
        raise RefusedError(f"'{name}' was not measured with {size} devices on {where}", where="profiles", fix="gantline profile run --gpus")
    best = ways[0][0]
    found = tuple(
        Way(accelerators=amounts.spell_devices(kind, size, size), rate=best / seconds) for seconds, kind in ways if seconds <= worst * best
    )
    resources = spec.resources.model_copy(update={"any_of": found, "gpus": None, "accelerators": None})
    steps = spec.progress.total or profile.steps
    change = {"resources": resources} | ({"estimate": steps * best} if steps and spec.estimate is None else {})
    return JobSpec.model_validate(spec.model_copy(update=change).to_json())
