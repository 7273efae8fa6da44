"""Specifications from YAML files and from programs, completed by profiles and checked against the cluster.

Every mistake names its line, its field and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.policy import Policy
from gantline.core.slices import is_slice
from gantline.live.jobs import amounts
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_parts import Resources, Variant
from gantline.models.profiles.bundle import Bundle
from gantline.traces.files.marked_yaml import Marked, load_marked
from gantline.traces.files.speeds import read_bundle

LARGEST = 1_000_000
"""Bytes of a specification."""
_NAMED = re.compile(r"^'(\w+)'")
_KINDS = {
    "string_type": "is not text",
    "int_type": "is not a whole number",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "bool_type": "is neither true nor false",
    "dict_type": "is not a mapping",
    "model_type": "is not a mapping",
    "model_attributes_type": "is not a mapping",
    "tuple_type": "is not a list",
    "missing": "is missing",
}


def read_spec(path: Path) -> JobSpec:
    """The specification in a YAML file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(path), fix="check the path") from None
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    if len(content) > LARGEST:
        raise UsageError(f"is larger than {LARGEST} bytes", where=str(path), fix="a job's specification is a page of text")
    try:
        return parse_spec(content.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise UsageError("is not text", where=str(path), fix="a job's specification is a YAML file") from None


def parse_spec(text: str, name: str = "job") -> JobSpec:
    """The specification in a YAML text."""
    document = load_marked(text, name)
    if not isinstance(document.value, dict):
        raise UsageError("is not a mapping", where=name, fix="begin with run: [python, train.py]")
    return _checked(document)


def spec_of(value: Mapping[str, Any], name: str = "job") -> JobSpec:
    """The specification in a plain value, such as the body of a request."""
    return _checked(Marked(dict(value), {}, name))


def _checked(document: Marked) -> JobSpec:
    try:
        return JobSpec.model_validate(document.value)
    except ValidationError as error:
        raise _first(error, document) from None
    except RecursionError:
        raise UsageError("is nested too deeply", where=document.name, fix="a few levels are enough") from None


def _first(error: ValidationError, document: Marked) -> UsageError:
    """The first mistake as one of our errors; of several attempts at one value the one that got furthest."""
    found = max(error.errors(include_url=False), key=lambda one: (one["type"] == "extra_forbidden", one["type"] == "gantline"))
    kind, context = found["type"], found.get("ctx", {})
    path = _written(found["loc"], document.value, kind == "missing")
    if kind == "extra_forbidden":
        known = _fields(path[:-1])
        what, fix = f"unknown key '{path[-1]}'", near(str(path[-1]), known)
    elif kind == "gantline":
        what, fix = str(context["what"]), str(context["fix"])
    elif kind == "missing":
        what, fix = "is missing", f"add {path[-1]}: ..."
    elif kind == "literal_error":
        what, fix = f"{_short(found['input'])} is not one of the choices", f"write {context['expected']}"
    elif kind in _KINDS:
        what, fix = f"{_short(found['input'])} {_KINDS[kind]}", ""
    else:
        what, fix = f"{_short(found['input'])}: {found['msg'][:1].lower()}{found['msg'][1:]}", ""
    if not path and (named := _NAMED.match(what)) and named[1] in document.value:
        path = (named[1],)
    place = document.where(path) if document.lines else f"{document.name}: field '{'.'.join(map(str, path))}'" if path else document.name
    return UsageError(what, where=place, fix=fix)


def _written(path: tuple[str | int, ...], value: Any, missing: bool) -> tuple[str | int, ...]:
    """The parts of a path that stand in the document; the others are names of attempts at a value."""
    found: list[str | int] = []
    for place, part in enumerate(path):
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            if not (missing and place == len(path) - 1):
                continue
        found.append(part)
    return tuple(found)


def _fields(path: tuple[str | int, ...]) -> list[str]:
    """The keys that may stand at a path."""
    model: Any = JobSpec
    for part in path:
        if isinstance(part, int):
            continue
        models = [one for one in _models(model.model_fields[part].annotation) if hasattr(one, "model_fields")]
        if not models:
            return []
        model = models[0]
    return [*model.model_fields]


def _models(annotation: Any) -> list[Any]:
    inner = getattr(annotation, "__args__", None)
    return [annotation] if not inner else [found for one in inner for found in _models(one)]


def _short(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."


# What profiles have measured of a job, as its options with their speeds and how long it takes.


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
    named = {
        kind for kind in (amounts.devices(variant.accelerators or 1, "accelerators")[0] for variant in spec.resources.variants) if kind
    }
    variants = sorted((seconds, kind) for kind, seconds in paces.items() if not named or kind in named)
    if not variants:
        where = " or ".join(sorted(named)) or "any type"
        raise RefusedError(f"'{name}' was not measured with {size} devices on {where}", where="profiles", fix="gantline profile run --gpus")
    best = variants[0][0]
    found = tuple(
        Variant(accelerators=amounts.spell_devices(kind, size, size), rate=best / seconds)
        for seconds, kind in variants
        if seconds <= worst * best
    )
    resources = spec.resources.model_copy(update={"any_of": found, "gpus": None, "accelerators": None})
    steps = spec.progress.total or profile.steps
    change = {"resources": resources} | ({"estimate": steps * best} if steps and spec.estimate is None else {})
    return JobSpec.model_validate(spec.model_copy(update=change).to_json())


# What this cluster or its policy cannot do for a specification is refused at submission; nothing is ignored.


def check_promises(spec: JobSpec, cluster: Cluster, policy: Policy) -> None:
    """Refuse requirements on racks, nodes and parts of devices that nothing here would enforce."""
    wanted = spec.resources
    if wanted.topology.within == "rack":
        fix = "within: node (devices of one type are on one node here), or cluster"
        raise RefusedError("racks are not known here", where="resources.topology.within", fix=fix)
    if wanted.topology.within == "gpu":
        _check_one_gpu(wanted, cluster)
    for variant in wanted.variants:
        kind, low, _ = amounts.devices(variant.accelerators or 1, "accelerators")
        _check_slices(spec, cluster, kind, low, variant.cpus)
        there = max((sum(node.type == name for node in cluster.nodes) for name in ([kind] if kind else cluster.types)), default=0)
        if variant.nodes[0] > max(there, 1):
            what = f"asks for {variant.nodes[0]} nodes, and {kind or 'each type'} has {there} here"
            raise RefusedError(what, where="resources.nodes", fix="ask for its devices on one node")
        if variant.nodes[0] > 1 and spec.on_one_node(low * variant.nodes[0]):
            what = f"asks for {variant.nodes[0]} nodes, and for fewer processes than devices or for one node, which puts it on one"
            raise RefusedError(
                what, where="resources.nodes", fix="processes: nodes (one on each) or gpus (one per device), within: cluster"
            )
    if wanted.share.fraction == 1.0:
        return
    if spec.sizes != (1, 1) or (spec.elastic is not None and spec.elastic.max > 1):
        raise RefusedError(
            f"is a part of one device, and the job asks for up to {max(spec.sizes[1], spec.elastic.max if spec.elastic else 0)}",
            where="resources.share",
            fix="ask for one device, or leave share out",
        )
    if not policy.shares_devices:
        raise RefusedError(
            f"policy '{policy.name}' gives every job whole devices",
            where="resources.share",
            fix="gantline policy use sharing (--set order=NAME: in the order of another policy), or leave share out",
        )


def _check_one_gpu(wanted: Resources, cluster: Cluster) -> None:
    where = "resources.topology"
    if not any(is_slice(node.type) for node in cluster.nodes):
        raise RefusedError("no GPU is cut in slices here", where=where, fix="gantline up --devices h200/8, or within: node")
    if wanted.topology.mode == "preferred":
        fix = "mode: required; what all gangs prefer is the placement's to say: gantline up --placement consolidated:preferred"
        raise RefusedError("a job cannot prefer slices of one GPU", where=where, fix=fix)


def _check_slices(spec: JobSpec, cluster: Cluster, kind: str, low: int, cpus: float) -> None:
    """Refuse more slices of one GPU than any has, and more CPUs than the cores that their processes are bound to."""
    nodes = [node for node in cluster.nodes if is_slice(node.type) and node.type == kind]
    if not nodes:
        return
    most = max(node.gpus for node in nodes)
    if low > most and spec.on_one_gpu(kind, low):
        what = f"asks for {low} slices of one GPU, and '{kind}' has {most}"
        raise RefusedError(what, where="resources", fix="ask for fewer, or start a process on each (processes: gpus)")
    cores = max(node.cpus / node.gpus for node in nodes)
    if cpus > low * max(1.0, cores):
        what = f"asks for {cpus:g} CPUs, and {low} x '{kind}' is bound to {low * max(1.0, cores):g}"
        raise RefusedError(what, where="resources.cpus", fix="ask for more slices, or for fewer CPUs")
