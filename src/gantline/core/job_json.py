"""One job of a snapshot as a plain JSON object and back.

Only what differs from its default is written, and defaults follow from what a person would write by hand: a job that lists devices
runs on them, one that does not has waited since it arrived. The true amount of work is never written: a snapshot holds what policies
may know.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import FREE, JobTable
from gantline.core.errors import UsageError, near
from gantline.core.json_reader import Reader, json_number
from gantline.core.options import Option, encode_option
from gantline.core.phases import Phase
from gantline.core.plan_json import decode_grant, encode_grant
from gantline.core.tables import Tables

_HOUR = 3600.0
CODES = tuple(column for column in JobTable.columns() if column.names)
_NUMBERS = tuple(column for column in JobTable.columns() if column.written and not column.secret)
_PHASES = {phase.name.lower(): phase for phase in Phase if phase.active}
_APART = ("id", "row", "listed", "phase", "devices", "node", "option", "options", "first_option", "way", "grant", "waits_for_turn", "trial")
KEYS = (*_APART, "metrics", *(column.key for column in (*CODES, *_NUMBERS)))


def encode_job(tables: Tables, row: int, now: float, packed: int) -> dict[str, Any]:
    """One row; `packed` is where its options would stand if the active rows' options followed one another."""
    jobs, cluster = tables.jobs, tables.cluster
    found: dict[str, Any] = {"id": tables.ids[row]}
    gpus, phase = int(jobs.gpus[row]), Phase(int(jobs.phase[row]))
    first, count, used = int(jobs.option_first[row]), int(jobs.option_count[row]), int(jobs.option[row])
    for column in CODES:
        if name := getattr(tables, column.names)[getattr(jobs, column.name)[row]]:
            found[column.key] = name
    options = [tables.options[k] for k in range(first, first + count)]
    if options != default_options(tables, gpus):
        found["options"] = [encode_option(option, cluster.types) for option in options]
    if first != packed:
        found["first_option"] = first
    if devices := tables.chain(row):
        found["devices"] = devices
    if row in tables.granted:
        found["grant"] = encode_grant(tables, tables.granted[row])
    if row in tables.waits_for_turn:
        found["waits_for_turn"] = True
    if row in tables.trials:
        found["trial"] = json_number(tables.trials[row])
    if jobs.node[row] >= 0:
        found["node"] = cluster.nodes[int(jobs.node[row])].name
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
    facts = {"gpus": gpus, "arrival": float(jobs.arrival[row]), "service": float(jobs.service[row]), "done": float(jobs.done[row])}
    usual = _usual(facts, now, phase, len(devices), tables.options[used] if used >= 0 else None)
    for column in _NUMBERS:
        value = getattr(jobs, column.name)[row].item()
        if value != usual[column.key] and not (math.isnan(value) and math.isnan(usual[column.key])):
            found[column.key] = json_number(value) if isinstance(value, float) else value
    return found


def decode_job(reader: Reader, tables: Tables, row: int, now: float, options: list[Option], first: int) -> None:
    """Fill one row; its options stand at `first` in the table already."""
    jobs = tables.jobs
    gpus = reader.whole("gpus", 1)
    jobs.option_first[row], jobs.option_count[row] = first, len(options)
    jobs.smallest[row] = min((option.gpus for option in options), default=gpus)
    devices = list(reader.wholes("devices"))
    _hold(reader, tables, row, devices)
    default_phase = "running" if devices or "node" in reader else "pending"
    phase = _phase(reader.text("phase", default_phase), reader.at("phase"))
    if "node" in reader:
        numbers = {node.name: number for number, node in enumerate(tables.cluster.nodes)}
        name = reader.text("node")
        if name not in numbers:
            raise UsageError(f"no node '{name}'", where=reader.at("node"), fix=near(name, numbers))
        jobs.node[row] = numbers[name]
    used = _option_in_use(reader, tables, phase, devices, options, first)
    facts: dict[str, Any] = {"gpus": gpus, "arrival": reader.number("arrival", 0.0), "service": reader.number("service", 0.0)}
    facts["done"] = reader.number("done", facts["service"])
    usual = _usual(facts, now, phase, len(devices), tables.options[used] if used >= 0 else None)
    for column in _NUMBERS:
        read = reader.number if column.kind is np.float64 else reader.whole
        getattr(jobs, column.name)[row] = read(column.key, usual[column.key])
    jobs.phase[row], jobs.option[row] = int(phase), used
    if "grant" in reader:
        grant = tables.granted[row] = decode_grant(Reader(reader.raw("grant"), reader.at("grant")))
        devices = devices or list(grant.devices)
    if reader.flag("waits_for_turn", False):
        tables.waits_for_turn.add(row)
    if "trial" in reader:
        tables.trials[row] = reader.number("trial", 0.0)
    jobs.spread[row] = len({int(tables.devices.node[device]) for device in devices}) or int(jobs.node[row] >= 0)
    jobs.work[row] = jobs.estimate[row]
    if not jobs.arrival[row] >= 0:
        raise UsageError(f"is {jobs.arrival[row]}", where=reader.at("arrival"), fix="use zero or more seconds")


def fill_metrics(job: Reader, tables: Tables, row: int) -> None:
    """What is known of a job beyond the columns, by name."""
    if "metrics" in job:
        inner = Reader(job.raw("metrics"), job.at("metrics"))
        for name in job.raw("metrics"):
            tables.metric(name)[row] = inner.number(name, math.nan)


def _usual(facts: dict[str, Any], now: float, phase: Phase, held: int, way: Option | None) -> dict[str, Any]:
    """What is meant where a file says nothing, given the few things that it must say; else what a blank row has."""
    holds, ran = phase.holds_devices, facts["service"] > 0
    begun = now - facts["service"] if holds else (facts["arrival"] if ran else math.nan)
    return {column.key: column.default for column in _NUMBERS} | {
        "gpu_time": facts["service"] * facts["gpus"],
        "done": facts["service"],
        "estimate": facts["done"] + _HOUR,
        "since": now if holds else facts["arrival"],
        "rate": way.rate if holds and way is not None else 0.0,
        "first_start": begun,
        "last_start": begun,
        "admitted": facts["arrival"],
        "safe": 0.0 if holds else facts["done"],
        "mark": begun,
        "gpus": 1,
        "min_gpus": facts["gpus"],
        "max_gpus": facts["gpus"],
        "held": held,
    }


def default_options(tables: Tables, gpus: int) -> list[Option]:
    """A job that names no options may run on any type that has devices, at speed one."""
    return [Option(code, gpus, rate_spread=1.0) for code, name in enumerate(tables.cluster.types) if tables.cluster.gpus_of(name) > 0]


def _hold(reader: Reader, tables: Tables, row: int, devices: list[int]) -> None:
    table, count = tables.devices, tables.cluster.gpus
    for place, device in enumerate(devices):
        path = f"{reader.at('devices')}[{place}]"
        if device >= count:
            raise UsageError(f"is device {device} of {count}", where=path, fix=f"devices are numbered 0 to {count - 1}")
        if table.holder[device] != FREE:
            holder = tables.ids[int(table.holder[device])]
            raise UsageError(f"device {device} is held by job '{holder}' already", where=path, fix="a device has one holder")
        table.holder[device] = row
    if devices:
        tables.jobs.head[row] = devices[0]
        table.next[devices] = [*devices[1:], -1]


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
    kind = int(tables.nodes.type[tables.devices.node[devices[0]]]) if devices else -1
    for number, option in enumerate(options):
        if option.gpus == len(devices) and kind in (-1, option.type):
            return first + number
    raise UsageError(
        f"holds {len(devices)} devices, which none of its options asks for", where=reader.path, fix="set gpus, or list such an option"
    )


_WAIT = (int(Phase.PENDING), int(Phase.HELD))  # what is written of them does not depend on the time


class KnownRows:
    """What was written of rows that wait: writing a long queue again costs only its new rows. Call `look` before each time."""

    def __init__(self) -> None:
        self._jobs: dict[int, dict[str, Any]] = {}
        self._rows: Ints = np.empty(0, dtype=np.int64)  # those that waited at the last look, and how they were then
        self._F: Floats = np.empty((0, 0))
        self._I: Ints = np.empty((0, 0), dtype=np.int64)
        self._metrics: dict[str, Floats] = {}
        self.written = 0  # rows that had to be written anew

    def look(self, tables: Tables) -> None:
        """Forget those that have changed."""
        if len(self._rows):
            F, I = tables.F[:, self._rows], tables.I[:, self._rows]
            same = _equal(F, self._F) & (I == self._I).all(axis=0)
            for name, values in tables.metrics.items():
                before = self._metrics.get(name, np.full(len(self._rows), np.nan))
                same &= _equal(values[None, self._rows], before[None, :])
            self._jobs = {row: self._jobs[row] for row in self._rows[same].tolist() if row in self._jobs}
        self._rows = np.flatnonzero(np.isin(tables.jobs.phase[: len(tables.ids)], _WAIT))
        self._F, self._I = tables.F[:, self._rows], tables.I[:, self._rows]
        self._metrics = {name: values[self._rows] for name, values in tables.metrics.items()}

    def encode(self, tables: Tables, row: int, now: float, packed: int) -> dict[str, Any]:
        """As `encode_job` has it."""
        first = int(tables.jobs.option_first[row])
        found = self._jobs.get(row)
        if found is None:
            found = encode_job(tables, row, now, first)
            self.written += 1
            plain = row not in tables.granted and row not in tables.waits_for_turn and row not in tables.trials
            if plain and int(tables.jobs.phase[row]) in _WAIT:
                self._jobs[row] = found
        elif row in tables.waits_for_turn:
            return encode_job(tables, row, now, packed)
        return dict(found) if first == packed else {**found, "first_option": first}


def _equal(one: Floats, other: Floats) -> Bools:
    """Columns that are equal, where nothing is equal to nothing."""
    same: Bools = ((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=0)
    return same
