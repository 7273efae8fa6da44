"""Plans as plain JSON values and back, without loss. `docs/snapshots.md` lists the fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from gantline.core import memory as memories
from gantline.core.columns import HOST_RESOURCE_NAMES, Job
from gantline.core.errors import UsageError, near
from gantline.core.grant import Grant, Worker
from gantline.core.json_reader import Reader, as_number, as_whole, check_head, json_number
from gantline.core.options import Option, decode_option, encode_option
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Assignments, InCharge, Misfit, Mode, Part, Plan, Ranking, Refusal, Reservation
from gantline.core.tables import Tables

VERSION = 1
_KEYS = ("kind", "version", "ranking", "assignments", "reservations", "refusals", "release", "valid_until", "memory", "notes", "in_charge")
_COLUMNS = {item.name: item.default for item in fields(Assignment)}
_LISTS = ("devices", "nodes")
_TEXTS = ("within", "purpose")


def encode_plan(plan: Plan) -> dict[str, Any]:
    """The plan as values that JSON can hold; what is at its default is left out."""
    found: dict[str, Any] = {"kind": "plan", "version": VERSION}
    if plan.ranking is not None:
        ranking = plan.ranking
        keys = [json_number(key) for key in ranking.key.tolist()]
        found["ranking"] = {"key": keys, "misfit": Misfit(ranking.misfit).name.lower(), "preempt": bool(ranking.preempt)}
        if ranking.placement is not None:
            found["ranking"]["placement"] = ranking.placement
    if plan.assignments is not None:
        found["assignments"] = _encode_assignments(plan.assignments)
    if plan.reservations:
        found["reservations"] = encode_reservations(plan.reservations)
    if plan.refusals:
        found["refusals"] = [
            {"job": int(one.job), "why": one.why, "offer": {key: json_number(value) for key, value in one.offer.items()}}
            for one in plan.refusals
        ]
    if plan.release:
        found["release"] = [int(node) for node in plan.release]
    if plan.valid_until is not None:
        found["valid_until"] = json_number(plan.valid_until)
    if plan.memory is not None:
        found["memory"] = memories.plain(plan.memory)
    if plan.notes:
        found["notes"] = list(plan.notes)
    if plan.in_charge is not None:
        one = plan.in_charge
        found["in_charge"] = {"policy": one.policy, "since": json_number(one.since), "why": one.why}
    return found


def decode_plan(value: Mapping[str, Any]) -> Plan:
    """The plan that `encode_plan` wrote."""
    reader = Reader(value, "plan")
    check_head(reader, "plan", VERSION)
    reader.only(_KEYS)
    return Plan(
        ranking=_decode_ranking(reader),
        assignments=_decode_assignments(reader) if "assignments" in reader else None,
        reservations=decode_reservations(reader),
        refusals=tuple(_decode_refusal(Reader(item, path)) for item, path in reader.items("refusals")),
        release=reader.wholes("release"),
        valid_until=reader.number("valid_until", 0.0) if "valid_until" in reader else None,
        memory=memories.restore(reader.raw("memory")),
        notes=tuple(reader.texts("notes")),
        in_charge=_decode_in_charge(Reader(reader.raw("in_charge"), reader.at("in_charge"))) if "in_charge" in reader else None,
    )


def encode_reservations(reservations: tuple[Reservation, ...]) -> list[dict[str, Any]]:
    """Reservations as objects."""
    return [
        {
            "start": json_number(one.start),
            "end": json_number(one.end),
            "gpus": int(one.gpus),
            "type": int(one.type),
            "job": int(one.job),
            "nodes": [int(node) for node in one.nodes],
        }
        for one in reservations
    ]


def decode_reservations(reader: Reader) -> tuple[Reservation, ...]:
    """The reservations of a plan or a snapshot."""
    found = []
    for item, path in reader.items("reservations"):
        one = Reader(item, path)
        one.only(("start", "end", "gpus", "type", "job", "nodes"))
        found.append(
            Reservation(
                one.number("start", 0.0),
                one.number("end", math.inf),
                one.whole("gpus"),
                one.whole("type", -1, least=-1),
                one.whole("job", -1, least=-1),
                one.wholes("nodes"),
            )
        )
    return tuple(found)


def _decode_refusal(reader: Reader) -> Refusal:
    reader.only(("job", "why", "offer"))
    offer = Reader(reader.raw("offer", {}), reader.at("offer"))
    return Refusal(reader.whole("job"), reader.text("why"), {key: offer.number(key, 0.0) for key in reader.raw("offer", {})})


def _decode_in_charge(reader: Reader) -> InCharge:
    reader.only(("policy", "since", "why"))
    return InCharge(reader.text("policy"), reader.number("since", 0.0), reader.text("why", ""))


def _decode_ranking(reader: Reader) -> Ranking | None:
    if "ranking" not in reader:
        return None
    inner = Reader(reader.raw("ranking"), reader.at("ranking"))
    inner.only(("key", "misfit", "preempt", "placement"))
    key = np.array([as_number(item, path) for item, path in inner.items("key")], dtype=np.float64)
    misfit = _named(Misfit, inner.text("misfit", "skip"), inner.at("misfit"))
    return Ranking(key, misfit, inner.flag("preempt", True), inner.text("placement") if "placement" in inner else None)


def _encode_assignments(table: Assignments) -> dict[str, list[Any]]:
    """Columns, exactly those that the plan has."""
    found: dict[str, list[Any]] = {"job": table.job.tolist()}
    for name, default in _COLUMNS.items():
        if name == "job" or not table.has(name):
            continue
        if name == "parts":
            found[name] = [[_encode_part(part) for part in parts] for parts in table.entries(name)]
        elif name in _LISTS:
            found[name] = [[int(number) for number in numbers] for numbers in table.entries(name)]
        elif name in _TEXTS:
            found[name] = list(table.entries(name))
        elif name == "mode":
            found[name] = [Mode(int(mode)).name.lower() for mode in table.column(name)]
        elif isinstance(default, float):
            found[name] = [json_number(number) for number in table.column(name).tolist()]
        else:
            found[name] = table.column(name).tolist()
    return found


def _decode_assignments(reader: Reader) -> Assignments:
    inner = Reader(reader.raw("assignments"), reader.at("assignments"))
    inner.only(_COLUMNS)
    columns: dict[str, Any] = {}
    for name, default in _COLUMNS.items():
        if name not in inner:
            continue
        columns[name] = [_decode_cell(name, default, item, path) for item, path in inner.items(name)]
        if len(columns[name]) != len(columns["job"]):
            raise UsageError(f"has {len(columns[name])} entries for {len(columns['job'])} jobs", where=inner.at(name))
    return Assignments(columns.pop("job", []), **columns)


def _decode_cell(name: str, default: Any, item: Any, path: str) -> Any:
    if name == "parts":
        return tuple(_decode_part(Reader(part, f"{path}[{k}]")) for k, part in enumerate(item))
    if name in _LISTS:
        return tuple(as_whole(number, f"{path}[{k}]") for k, number in enumerate(item))
    if name in _TEXTS or isinstance(default, bool):
        return item
    if name == "mode":
        return _named(Mode, item, path)
    return as_number(item, path) if isinstance(default, float) else as_whole(item, path, -1)


def _encode_part(part: Part) -> dict[str, Any]:
    return {
        "role": part.role,
        "type": part.type,
        "count": part.count,
        "gpus": part.gpus,
        "cpus": json_number(part.cpus),
        "memory": json_number(part.memory),
        "storage": json_number(part.storage),
        "nodes": list(part.nodes),
        "devices": list(part.devices),
    }


def _decode_part(reader: Reader) -> Part:
    reader.only(("role", "type", "count", "gpus", "cpus", "memory", "nodes", "devices", "storage"))
    return Part(
        reader.text("role"),
        reader.whole("type"),
        reader.whole("count"),
        reader.whole("gpus", 1),
        reader.number("cpus", 0.0),
        reader.number("memory", 0.0),
        reader.wholes("nodes"),
        reader.wholes("devices"),
        reader.number("storage", 0.0),
    )


def _named(kind: Any, name: Any, path: str) -> Any:
    """The member of an enumeration that a word means."""
    known = {member.name.lower(): member for member in kind}
    if name not in known:
        raise UsageError(f"'{name}' is not known", where=path, fix=near(str(name), known))
    return known[name]


_GRANT_KEYS = ("assignments", "members", "devices", "shared", "workers", "side", "fluid")
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
    reader.only(_GRANT_KEYS)
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
