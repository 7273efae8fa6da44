"""Plans as plain JSON values and back, without loss. `docs/snapshots.md` lists the fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_type_hints

import numpy as np

from gantline.core import memory as memories
from gantline.core.errors import UsageError
from gantline.core.grant import Grant, Worker
from gantline.core.json_reader import Reader, as_member, as_number, as_whole, check_head, decode, decode_record, encode, json_number
from gantline.core.options import Option, decode_option, encode_option
from gantline.core.phases import Phase
from gantline.core.plan import Assignment, Assignments, InCharge, Misfit, Mode, Plan, Ranking, Refusal, Reservation
from gantline.core.tables import Tables

VERSION = 1
_KEYS = ("kind", "version", "ranking", "assignments", "reservations", "refusals", "release", "valid_until", "memory", "notes", "in_charge")
_COLUMNS = get_type_hints(Assignment)


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
    rest = {name: getattr(plan, name) for name in ("reservations", "refusals", "release", "valid_until", "notes", "in_charge")}
    found |= encode({name: value for name, value in rest.items() if value not in (None, ())}, full=True)
    if plan.memory is not None:
        found["memory"] = memories.plain(plan.memory)
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
        refusals=decode(tuple[Refusal, ...], reader.raw("refusals", []), reader.at("refusals")),
        release=reader.wholes("release"),
        valid_until=reader.number("valid_until", 0.0) if "valid_until" in reader else None,
        memory=memories.restore(reader.raw("memory")),
        notes=tuple(reader.texts("notes")),
        in_charge=_decode_in_charge(Reader(reader.raw("in_charge"), reader.at("in_charge"))) if "in_charge" in reader else None,
    )


def decode_reservations(reader: Reader) -> tuple[Reservation, ...]:
    """The reservations of a plan or a snapshot."""
    listed = (Reader(item, path) for item, path in reader.items("reservations"))
    return tuple(decode_record(Reservation, one, start=one.number("start", 0.0), end=one.number("end", math.inf)) for one in listed)


def _decode_in_charge(reader: Reader) -> InCharge:
    return decode_record(InCharge, reader, since=reader.number("since", 0.0))


def _decode_ranking(reader: Reader) -> Ranking | None:
    if "ranking" not in reader:
        return None
    inner = Reader(reader.raw("ranking"), reader.at("ranking"))
    inner.only(("key", "misfit", "preempt", "placement"))
    key = np.array([as_number(item, path) for item, path in inner.items("key")], dtype=np.float64)
    misfit = as_member(Misfit, inner.text("misfit", "skip"), inner.at("misfit"))
    return Ranking(key, misfit, inner.flag("preempt", True), inner.text("placement") if "placement" in inner else None)


def _encode_assignments(table: Assignments) -> dict[str, list[Any]]:
    """Columns, exactly those that the plan has."""
    found = {}
    for name, entries in table.filled_columns():
        found[name] = encode(list(map(Mode, entries)) if name == "mode" else list(entries), full=True)
    return found


def _decode_assignments(reader: Reader) -> Assignments:
    inner = Reader(reader.raw("assignments"), reader.at("assignments"))
    inner.only(_COLUMNS)
    columns: dict[str, Any] = {}
    for name, kind in _COLUMNS.items():
        if name not in inner:
            continue
        columns[name] = [item if kind in (str, bool) else decode(kind, item, path, -1) for item, path in inner.items(name)]
        if len(columns[name]) != len(columns["job"]):
            raise UsageError(f"has {len(columns[name])} entries for {len(columns['job'])} jobs", where=inner.at(name))
    return Assignments(columns.pop("job", []), **columns)


_GRANT_KEYS = ("assignments", "members", "devices", "shared", "workers", "side", "fluid")


def encode_grant(tables: Tables, grant: Grant) -> dict[str, Any]:
    """One grant; its assignments are columns as in a plan, with the row as `job`. Members that are not active are not written."""
    found: dict[str, Any] = {"assignments": encode_plan(Plan.assign(grant.items))["assignments"]}
    found["members"] = [sorted(row for row in group if Phase(int(tables.jobs.phase[row])).active) for group in grant.members]
    if grant.devices:
        found["devices"] = list(grant.devices)
    if grant.shared:
        found["shared"] = True
    if grant.workers:
        found["workers"] = encode(grant.workers, full=True)
    if grant.side:
        found["side"] = encode(grant.side)
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
    workers = (Reader(entry, path) for entry, path in reader.items("workers"))
    return Grant(
        tuple(plan.assignments or ()),
        tuple(members),
        reader.wholes("devices"),
        reader.flag("shared", False),
        tuple(decode_record(Worker, one, role=one.text("role", "")) for one in workers),
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
