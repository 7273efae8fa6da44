"""Grants that are more than a gang of its own, as plain JSON objects and back."""

from __future__ import annotations

from typing import Any

from gantline.core.columns import HOST_RESOURCE_NAMES, Job
from gantline.core.grant import Grant, Worker
from gantline.core.json_reader import Reader, as_number, as_whole, json_number
from gantline.core.option_json import decode_option, encode_option
from gantline.core.options import Option
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.core.plan_json import decode_plan, encode_plan
from gantline.core.tables import Tables

_KEYS = ("assignments", "members", "devices", "shared", "workers", "side", "fluid")
_WORKER_KEYS = ("role", "node", "devices", "cpus", "memory", "storage")


def encode_grant(tables: Tables, grant: Grant) -> dict[str, Any]:
    """One grant; its assignments are columns as in a plan, with the row as `job`. Members that are not active are not written."""
    found: dict[str, Any] = {"assignments": encode_plan(Plan.assign(grant.items))["assignments"]}
    found["members"] = [sorted(row for row in group if Phase(int(tables.I[Job.PHASE, row])).active) for group in grant.members]
    if grant.devices:
        found["devices"] = list(grant.devices)
    if grant.shared:
        found["shared"] = True
    if grant.workers:
        found["workers"] = [
            {"role": w.role, "node": w.node, "devices": list(w.devices)}
            | {name: json_number(getattr(w, name)) for name in HOST_RESOURCE_NAMES}
            for w in grant.workers
        ]
    if grant.side:
        found["side"] = [[node, *map(json_number, amounts)] for node, *amounts in grant.side]
    if grant.fluid:
        types = tables.cluster.types
        found["fluid"] = [
            {"way": {**encode_option(tables.options[row], types), "row": row}, "worth": json_number(amount)} for row, amount in grant.fluid
        ]
    return found


def decode_grant(reader: Reader) -> Grant:
    """The grant that `encode_grant` wrote."""
    reader.only(_KEYS)
    plan = decode_plan({"kind": "plan", "version": 1, "assignments": reader.raw("assignments", {"job": []})})
    members = []
    for group, path in reader.items("members"):
        members.append(frozenset(Reader({"rows": group}, path).wholes("rows")))
    side = []
    for entry, path in reader.items("side"):
        node, *amounts = entry
        cpus, memory, storage = (as_number(amount, path) for amount in amounts)
        side.append((as_whole(node, path), cpus, memory, storage))
    fluid = []
    for entry, path in reader.items("fluid"):
        one = Reader(entry, path)
        fluid.append((Reader(one.raw("way"), one.at("way")).whole("row"), one.number("worth", 0.0)))
    return Grant(
        tuple(plan.assignments or ()),
        tuple(members),
        reader.wholes("devices"),
        reader.flag("shared", False),
        tuple(_decode_worker(Reader(entry, path)) for entry, path in reader.items("workers")),
        tuple(side),
        tuple(fluid),
    )


def fluid_ways(reader: Reader, types: tuple[str, ...]) -> dict[int, Option]:
    """Rows and options that a grant's shares of the time refer to."""
    found = {}
    for entry, path in reader.items("fluid"):
        way = Reader(Reader(entry, path).raw("way"), f"{path}.way")
        found[way.whole("row")] = decode_option(way, types)
    return found


def _decode_worker(reader: Reader) -> Worker:
    reader.only(_WORKER_KEYS)
    return Worker(
        reader.text("role", ""), reader.whole("node"), reader.wholes("devices"), *(reader.number(name, 0.0) for name in HOST_RESOURCE_NAMES)
    )
