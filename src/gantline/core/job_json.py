"""One job of a snapshot as a plain JSON object and back.

Only what differs from its default is written, and defaults follow from what a person would write by hand: a job that lists devices
runs on them, one that does not has waited since it arrived. The true amount of work is never written: a snapshot holds what policies
may know.
"""

from __future__ import annotations

import math
from typing import Any

from gantline.core.columns import FREE, Device, Job, Node
from gantline.core.errors import UsageError, near
from gantline.core.json_reader import Reader, json_number
from gantline.core.options import Option, encode_option
from gantline.core.phases import Phase
from gantline.core.plan_json import decode_grant, encode_grant
from gantline.core.tables import Tables

_HOUR = 3600.0
_FLOATS = {
    "arrival": Job.ARRIVAL,
    "priority": Job.PRIORITY,
    "weight": Job.WEIGHT,
    "deadline": Job.DEADLINE,
    "service": Job.SERVICE,
    "gpu_time": Job.GPUTIME,
    "done": Job.DONE,
    "estimate": Job.ESTIMATE,
    "since": Job.SINCE,
    "rate": Job.RATE,
    "first_start": Job.FIRST_START,
    "last_start": Job.LAST_START,
    "until": Job.UNTIL,
    "admitted": Job.ADMITTED,
    "safe": Job.SAFE,
    "lost": Job.LOST,
    "checkpoint": Job.CHECKPOINT,
    "waited": Job.WAITED,
    "mark": Job.MARK,
    "speed_until": Job.SPEED_UNTIL,
    "limit_end": Job.LIMIT_END,
}
_INTS = {
    "gpus": Job.GPUS, "min_gpus": Job.MIN_GPUS, "max_gpus": Job.MAX_GPUS, "held": Job.HELD, "locked": Job.LOCKED, "restarts": Job.RESTARTS,
    "preemptions": Job.PREEMPTIONS, "epoch": Job.EPOCH, "consolidate": Job.CONSOLIDATE, "reason": Job.REASON,
    "reserved": Job.RESERVED,
}  # fmt: skip
NAMES = {"user": Job.USER, "queue": Job.QUEUE, "app": Job.APP, "model": Job.MODEL}
_PHASES = {phase.name.lower(): phase for phase in Phase if phase.active}
KEYS = (
    "id",
    "row",
    "listed",
    "phase",
    "devices",
    "node",
    "option",
    "options",
    "first_option",
    "way",
    "grant",
    "waits_for_turn",
    "trial",
    "metrics",
    *NAMES,
    *_FLOATS,
    *_INTS,
)


def encode_job(tables: Tables, row: int, now: float, packed: int) -> dict[str, Any]:
    """One row; `packed` is where its options would stand if the active rows' options followed one another."""
    F, I, cluster = tables.F, tables.I, tables.cluster
    found: dict[str, Any] = {"id": tables.ids[row]}
    gpus, phase = int(I[Job.GPUS, row]), Phase(int(I[Job.PHASE, row]))
    first, count, used = int(I[Job.OPTION_FIRST, row]), int(I[Job.OPTION_COUNT, row]), int(I[Job.OPTION, row])
    names = {"user": tables.users, "queue": tables.queues, "app": tables.apps, "model": tables.models}
    for key, column in NAMES.items():
        if names[key][I[column, row]]:
            found[key] = names[key][I[column, row]]
    options = [tables.options[k] for k in range(first, first + count)]
    if options != default_options(tables, gpus):
        found["options"] = [encode_option(option, cluster.types) for option in options]
    if first != packed:
        found["first_option"] = first
    if devices := _chain(tables, row):
        found["devices"] = devices
    if row in tables.granted:
        found["grant"] = encode_grant(tables, tables.granted[row])
    if row in tables.waits_for_turn:
        found["waits_for_turn"] = True
    if row in tables.trials:
        found["trial"] = json_number(tables.trials[row])
    if I[Job.NODE, row] >= 0:
        found["node"] = cluster.nodes[int(I[Job.NODE, row])].name
    if phase is not (Phase.RUNNING if devices or "node" in found else Phase.PENDING):
        found["phase"] = phase.name.lower()
    if used >= 0 and first <= used < first + count:
        found["option"] = used - first
    elif used >= 0:
        found["way"] = {**encode_option(tables.options[used], cluster.types), "row": used}
    elif phase.holds_devices:  # it is stopping, and what it held is gone already
        found["option"] = -1
    kept = {name: values[row] for name, values in tables.metrics.items() if not math.isnan(values[row])}
    if kept:
        found["metrics"] = {name: json_number(value) for name, value in kept.items()}
    facts = {"gpus": gpus, "arrival": float(F[Job.ARRIVAL, row]), "service": float(F[Job.SERVICE, row]), "done": float(F[Job.DONE, row])}
    usual = defaults(facts, now, phase, len(devices), tables.options[used] if used >= 0 else None)
    for key, column in _FLOATS.items():
        value = float(F[column, row])
        if value != usual[key] and not (math.isnan(value) and math.isnan(usual[key])):
            found[key] = json_number(value)
    for key, column in _INTS.items():
        if I[column, row] != usual[key]:
            found[key] = int(I[column, row])
    return found


def decode_job(reader: Reader, tables: Tables, row: int, now: float, options: list[Option], first: int) -> None:
    """Fill one row; its options stand at `first` in the table already."""
    F, I = tables.F, tables.I
    gpus = reader.whole("gpus", 1)
    I[Job.OPTION_FIRST, row], I[Job.OPTION_COUNT, row] = first, len(options)
    I[Job.SMALLEST, row] = min((option.gpus for option in options), default=gpus)
    devices = list(reader.wholes("devices"))
    _hold(reader, tables, row, devices)
    default_phase = "running" if devices or "node" in reader else "pending"
    phase = _phase(reader.text("phase", default_phase), reader.at("phase"))
    if "node" in reader:
        numbers = {node.name: number for number, node in enumerate(tables.cluster.nodes)}
        name = reader.text("node")
        if name not in numbers:
            raise UsageError(f"no node '{name}'", where=reader.at("node"), fix=near(name, numbers))
        I[Job.NODE, row] = numbers[name]
    used = _option_in_use(reader, tables, phase, devices, options, first)
    facts: dict[str, Any] = {"gpus": gpus, "arrival": reader.number("arrival", 0.0), "service": reader.number("service", 0.0)}
    facts["done"] = reader.number("done", facts["service"])
    usual = defaults(facts, now, phase, len(devices), tables.options[used] if used >= 0 else None)
    for key, column in _FLOATS.items():
        F[column, row] = reader.number(key, usual[key])
    for key, column in _INTS.items():
        I[column, row] = reader.whole(key, usual[key])
    I[Job.PHASE, row], I[Job.OPTION, row] = int(phase), used
    if "grant" in reader:
        grant = tables.granted[row] = decode_grant(Reader(reader.raw("grant"), reader.at("grant")))
        devices = devices or list(grant.devices)
    if reader.flag("waits_for_turn", False):
        tables.waits_for_turn.add(row)
    if "trial" in reader:
        tables.trials[row] = reader.number("trial", 0.0)
    I[Job.SPREAD, row] = len({int(tables.D[Device.NODE, device]) for device in devices}) or int(I[Job.NODE, row] >= 0)
    F[Job.WORK, row] = F[Job.ESTIMATE, row]
    if not F[Job.ARRIVAL, row] >= 0:
        raise UsageError(f"is {F[Job.ARRIVAL, row]}", where=reader.at("arrival"), fix="use zero or more seconds")


def fill_metrics(job: Reader, tables: Tables, row: int) -> None:
    """What is known of a job beyond the columns, by name."""
    if "metrics" in job:
        inner = Reader(job.raw("metrics"), job.at("metrics"))
        for name in job.raw("metrics"):
            tables.metric(name)[row] = inner.number(name, math.nan)


def defaults(facts: dict[str, Any], now: float, phase: Phase, held: int, way: Option | None) -> dict[str, Any]:
    """What is meant where a file says nothing, given the few things that it must say."""
    holds, ran = phase.holds_devices, facts["service"] > 0
    begun = now - facts["service"] if holds else (facts["arrival"] if ran else math.nan)
    return {
        "arrival": 0.0,
        "priority": 0.0,
        "weight": 1.0,
        "deadline": math.nan,
        "service": 0.0,
        "gpu_time": facts["service"] * facts["gpus"],
        "done": facts["service"],
        "estimate": facts["done"] + _HOUR,
        "since": now if holds else facts["arrival"],
        "rate": way.rate if holds and way is not None else 0.0,
        "first_start": begun,
        "last_start": begun,
        "until": math.inf,
        "admitted": facts["arrival"],
        "safe": 0.0 if holds else facts["done"],
        "lost": 0.0,
        "checkpoint": 0.0,
        "waited": 0.0,
        "mark": begun,
        "speed_until": math.inf,
        "limit_end": math.inf,
        "gpus": 1,
        "min_gpus": facts["gpus"],
        "max_gpus": facts["gpus"],
        "held": held,
        "locked": 0,
        "restarts": 0,
        "preemptions": 0,
        "epoch": 0,
        "consolidate": 0,
        "reason": 0,
        "reserved": 0,
    }


def default_options(tables: Tables, gpus: int) -> list[Option]:
    """A job that names no options may run on any type that has devices, at speed one."""
    return [Option(code, gpus, rate_spread=1.0) for code, name in enumerate(tables.cluster.types) if tables.cluster.gpus_of(name) > 0]


def _chain(tables: Tables, row: int) -> list[int]:
    """The devices a row owns, in rank order."""
    device, held = int(tables.I[Job.HEAD, row]), []
    while device >= 0:
        held.append(device)
        device = int(tables.D[Device.NEXT, device])
    return held


def _hold(reader: Reader, tables: Tables, row: int, devices: list[int]) -> None:
    last = -1
    for place, device in enumerate(devices):
        path = f"{reader.at('devices')}[{place}]"
        if device >= tables.D.shape[1]:
            raise UsageError(
                f"is device {device} of {tables.D.shape[1]}", where=path, fix=f"devices are numbered 0 to {tables.D.shape[1] - 1}"
            )
        if tables.D[Device.HOLDER, device] != FREE:
            holder = tables.ids[int(tables.D[Device.HOLDER, device])]
            raise UsageError(f"device {device} is held by job '{holder}' already", where=path, fix="a device has one holder")
        tables.D[Device.HOLDER, device] = row
        if last < 0:
            tables.I[Job.HEAD, row] = device
        else:
            tables.D[Device.NEXT, last] = device
        last = device


def _phase(name: str, path: str) -> Phase:
    if name not in _PHASES:
        raise UsageError(f"'{name}' is no phase of an active job", where=path, fix=near(name, _PHASES))
    return _PHASES[name]


def _option_in_use(reader: Reader, tables: Tables, phase: Phase, devices: list[int], options: list[Option], first: int) -> int:
    """The row of the option that a job holds devices by; -1 for jobs that wait."""
    if "way" in reader:
        way = Reader(reader.raw("way"), reader.at("way"))
        return way.whole("row", len(tables.options) - 1)
    if "option" in reader:
        number = reader.whole("option", least=-1)
        if number < 0:
            return -1
        if number >= len(options):
            raise UsageError(
                f"is {number}, but the job has {len(options)} options", where=reader.at("option"), fix="they are counted from 0"
            )
        return first + number
    if not phase.holds_devices:
        return -1
    kind = int(tables.NI[Node.TYPE, tables.D[Device.NODE, devices[0]]]) if devices else -1
    for number, option in enumerate(options):
        if option.gpus == len(devices) and kind in (-1, option.type):
            return first + number
    raise UsageError(
        f"holds {len(devices)} devices, which none of its options asks for", where=reader.path, fix="set gpus, or list such an option"
    )
