"""Annotations of ours that have a value: what was written here is read as it is, what was edited by hand into another shape is not."""

from __future__ import annotations

import json

from gantline.live.kubernetes.objects import Object, Shown


def noted(notes: Shown, name: str) -> Object:
    """The value of an annotation; empty: it has none."""
    try:
        found = json.loads(str(notes.get(name) or "{}"))
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def line(value: Shown) -> str:
    """A value as an annotation has it."""
    return json.dumps(value, sort_keys=True)


def are_counts(value: object, *roles: str) -> bool:
    """Numbers of something by role, of these at least."""
    return isinstance(value, dict) and value.keys() >= set(roles) and all(is_count(one) for one in value.values())


def are_fields_of_owner(value: Object, replicas: str) -> bool:
    """Whether these are the fields that a service changes (`Guest.hold`), of an object whose roles are in the field `replicas`."""
    if not replicas:
        return is_count(value.get("parallelism")) and _is_flag(value.get("suspend"))
    policy, roles = value.get("runPolicy"), value.get(replicas)
    return isinstance(policy, dict) and _is_flag(policy.get("suspend")) and isinstance(roles, dict) and all(map(_is_role, roles.values()))


def scheduler_of(role: Object) -> object:
    """The scheduler that the template of a role names."""
    template = role.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    return spec.get("schedulerName") if isinstance(spec, dict) else None


def _is_role(value: object) -> bool:
    return isinstance(value, dict) and is_count(value.get("replicas")) and isinstance(scheduler_of(value), str | None)


def is_count(value: object) -> bool:
    """Whether it is a whole number of something."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: object) -> bool:
    return value is None or isinstance(value, bool)
