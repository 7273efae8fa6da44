"""What is known of incarnations and what was promised to rows, as plain JSON and back: the part of a checkpoint that no snapshot shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from gantline.core.grant import Grant
from gantline.core.inputs import Report, decode_input, encode_input
from gantline.core.json_reader import Reader
from gantline.core.options import Option, OptionTable, decode_option, encode_option
from gantline.core.plan_json import decode_grant, encode_grant
from gantline.core.tables import Tables
from gantline.engine.executor import Verb
from gantline.engine.in_flight import HOLDS, LiveGang
from gantline.engine.option_rows import OptionRows
from gantline.engine.reconcile import Reconciler

_PLAIN = ("row", "epoch", "node", "rate", "revision", "pause", "started", "saved", "onto", "rest", "suspended", "saves", "saves_done")


def encode_reality(reconciler: Reconciler, known: Mapping[int, Any]) -> dict[str, Any]:
    """All of it; `known` are the rows that the checkpoint has."""
    reality, tables = reconciler.reality, reconciler.state.tables
    asked = reconciler.state.asked_saves
    return {
        "live": [_encode_gang(one, tables) for one in reality.live.values()],
        "over": {str(row): epoch for row, epoch in reality.over.items() if row in known or row in reality.live},
        "promised": {str(row): [one.decided, one.pause] for row, one in reconciler.promises.items()},
        "asked_saves": {str(row): count for row, count in asked.items() if row in known},
        "ended": [encode_input(report) for report in reconciler.ended],
    }


def restore_reality(reconciler: Reconciler, saved: Mapping[str, Any]) -> None:
    """Restore the saved state: a grant that is promised and not ordered yet does not run; one that is about to change still does."""
    reality, state = reconciler.reality, reconciler.state
    reality.live.clear()
    reality.occupants.clear()
    for values in saved["live"]:
        one = _decode_gang(values, state.tables) if isinstance(values, Mapping) else _gang_of_list(values, state.tables)
        reality.enter(one)
        if one.saves:
            state.asked_saves[one.row] = one.saves
    reality.over = {int(row): epoch for row, epoch in saved["over"].items()}
    for row, (decided, pause) in saved.get("promised", {}).items():
        promise = reconciler.promises[int(row)]
        promise.decided, promise.pause = decided, pause
    state.asked_saves |= {int(row): count for row, count in saved.get("asked_saves", {}).items()}
    reports = (decode_input(one) for one in saved.get("ended", ()))
    reconciler.ended = [report for report in reports if isinstance(report, Report)]


def _encode_gang(one: LiveGang, tables: Tables) -> dict[str, Any]:
    found = {name: getattr(one, name) for name in _PLAIN}
    found |= {"devices": list(one.devices), "nodes": sorted(one.nodes), "asked": one.asked.value, "next_try": one.next_try}
    if math.isfinite(one.most):
        found["most"] = one.most
    if one.target is not None:
        found["target"] = list(one.target)
    if one.grant is not None:
        found["grant"] = encode_grant(tables, one.grant)
    return found


def _decode_gang(values: Mapping[str, Any], tables: Tables) -> LiveGang:
    target, grant = values.get("target"), None
    if "grant" in values:
        grant = _same(decode_grant(Reader(values["grant"], "checkpoint.live.grant")), tables.granted.get(values["row"]))
    return LiveGang(
        **{name: values[name] for name in _PLAIN},
        devices=tuple(values["devices"]),
        nodes=frozenset(values["nodes"]),
        target=None if target is None else tuple(target),
        asked=Verb(values["asked"]),
        next_try=values["next_try"],
        grant=grant,
        most=values.get("most", math.inf),
    )


def _gang_of_list(values: list[Any], tables: Tables) -> LiveGang:
    """As checkpoints of earlier versions have it: without what was asked of it, and on which terms."""
    row, epoch, devices, node, nodes, started, saved, onto, target, saves, done, *further = values
    revision, rest, suspended = further or (1, False, False)
    wanted = int(tables.jobs.phase[row]) in HOLDS and int(tables.jobs.epoch[row]) == epoch
    return LiveGang(
        row, epoch, tuple(devices), node, frozenset(nodes), rate=float(tables.jobs.rate[row]), grant=tables.granted.get(row),
        revision=revision, started=started, saved=saved, onto=onto, target=None if target is None else tuple(target), rest=rest,
        suspended=suspended, saves=saves, saves_done=done, asked=Verb.START if wanted else Verb.STOP,
    )  # fmt: skip


def _same(grant: Grant, held: Grant | None) -> Grant:
    """The very grant that the tables have, where they are equal: that is quicker to see."""
    return held if held == grant else grant


# Ways to run that were derived from the options of jobs, as plain JSON and back: a part of a checkpoint.
#
# A way keeps its number, and no number is used again, because a policy may remember it.


def encode_ways(ways: OptionRows, rows: Iterable[int]) -> dict[str, Any]:
    """How many options there were, and the ways derived from those of these rows."""
    t = ways.tables
    own = {int(t.jobs.option_first[row]) + k for row in rows for k in range(int(t.jobs.option_count[row]))}
    kept = [(key, row) for key, row in ways.derived.items() if _base(key) in own]
    entries = [[list(key), encode_option(t.options[row], t.cluster.types) | {"row": row}] for key, row in kept]
    return {"count": len(t.options), "derived": entries}


def make_room(tables: Tables, saved: Mapping[str, Any]) -> None:
    """As many options as there were, before anything refers to them."""
    ways = saved.get("ways", {})
    readers = [Reader(way, "checkpoint.ways") for _, way in ways.get("derived", ())]
    derived = {reader.whole("row"): decode_option(reader, tables.cluster.types) for reader in readers}
    known, blank = [tables.options[row] for row in range(len(tables.options))], Option(0, 0, 0.0)
    known += [blank] * (ways.get("count", 0) - len(known))
    tables.options = OptionTable.build([derived.get(row, option) for row, option in enumerate(known)])


def restore_ways(ways: OptionRows, saved: Mapping[str, Any]) -> None:
    """Find derived ways again."""
    ways.derived = {tuple(key): way["row"] for key, way in saved.get("ways", {}).get("derived", ())}


def _base(key: tuple[Any, ...]) -> int:
    """The option that a way is derived from; those without side demands of their own have a negative number."""
    return int(key[0]) if key[0] >= 0 else -1 - int(key[0])
