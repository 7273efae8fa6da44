"""Numbers by device type, as text or as a file: prices, what devices draw, and the speeds of single devices."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path

import numpy as np
import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, UsageError
from gantline.core.facts import DevicePower, DeviceSpeeds
from gantline.models.prices import parse_prices
from gantline.traces.importers.table import number, read_foreign
from gantline.traces.read import RawTable


def read_prices(given: Mapping[str, float] | str | Path | None, what: str = "prices") -> dict[str, float]:
    """Prices (or other numbers above zero) of device types from a mapping, from ``v100=0.74,k80=0.135`` or from a file (CSV or JSON)."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return parse_prices(",".join(f"{name}={price}" for name, price in given.items()), what)
    if isinstance(given, str) and "=" in given:
        return parse_prices(given, what)
    path = Path(given)
    if not path.is_file():
        raise NotFoundError("no such file", where=f"{what} {path}", fix="name a file, or write v100=0.74,k80=0.135")
    return parse_prices(path.read_text(encoding="utf-8"), str(path))


# What devices draw, from a text or a file: ``v100=300/60,k80=150/30`` are watts while a gang holds a device and while
# none does.

_FIX = "write busy/idle watts by type: v100=300/60,k80=150/30"


def read_power(given: str, where: str = "--power") -> dict[str, DevicePower]:
    """Watts by device type; a file has lines ``type,busy,idle``, a heading is passed over."""
    if not given:
        return {}
    if "=" in given:
        cells = [part.partition("=")[::2] for part in given.split(",") if part.strip()]
        return _unique([(name.strip(), watts.split("/"), where) for name, watts in cells])
    if not Path(given).is_file():
        raise NotFoundError(f"no file '{given}'", where=where, fix=_FIX)
    lines = Path(given).read_text(encoding="utf-8").splitlines()
    rows = [(line.split(","), f"{given}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if rows and rows[0][0][0].strip().lower() in ("type", "device"):
        rows = rows[1:]
    return _unique([(cells[0].strip(), cells[1:], place) for cells, place in rows])


def _unique(rows: list[tuple[str, list[str], str]]) -> dict[str, DevicePower]:
    found: dict[str, DevicePower] = {}
    for name, watts, where in rows:
        if name in found:
            raise UsageError(f"device type '{name}' stands there twice", where=where)
        found[name] = _power(name, watts, where)
    return found


def _power(name: str, watts: list[str], where: str) -> DevicePower:
    try:
        numbers = [float(each) for each in watts]
    except ValueError:
        numbers = []
    if not name or not 1 <= len(numbers) <= 2 or not all(isfinite(each) and each >= 0 for each in numbers):
        raise UsageError(f"'{name}={'/'.join(watts)}' is no power", where=where, fix=_FIX)
    power = DevicePower(*numbers)
    if power.idle > power.busy:
        raise UsageError(f"a '{name}' draws more idle ({power.idle:g} W) than busy ({power.busy:g} W)", where=where, fix=_FIX)
    return power


# Speeds of single devices from a CSV file: one row per device, one column per class of jobs.
#
# `gpu` is the device's number, `node` (if given) its node; `varA`, `varB` ... or simply `A`, `B` ... hold how many
# times longer a step of a job of that class takes there; `sfA`, `sfB` ... hold bins, where they have been computed
# before.

_WHERE = "--device-speeds"


def read_device_speeds(path: str, cluster: Cluster) -> DeviceSpeeds:
    """The table, checked against the cluster: every device once, on its node, with a speed above zero."""
    if not Path(path).is_file():
        raise NotFoundError(f"no file '{path}'", where=_WHERE, fix="name a CSV file with the columns gpu,node,varA,varB,...")
    raw = read_foreign(Path(path), ("gpu",))
    devices = len(cluster.device_node)
    device = number(raw, "gpu", required=True)
    _check_devices(raw, device, devices)
    order = device.cast(pl.Int64).arg_sort()
    if "node" in raw.frame.columns:
        _check_nodes(raw, device, cluster)
    columns = [name for name in raw.frame.columns if name not in ("gpu", "node")]
    bins = {name.removeprefix("sf"): _factors(raw, name)[order].to_numpy() for name in columns if name.startswith("sf")}
    speeds = {name.removeprefix("var"): _factors(raw, name)[order].to_numpy() for name in columns if not name.startswith("sf")}
    if not speeds:
        raise raw.error("has no column of speeds", fix="one per class of jobs: varA,varB,...")
    for name in bins:
        if name not in speeds:
            raise raw.error(f"column 'sf{name}' has no speeds beside it", field=f"sf{name}", fix=f"add var{name}, or leave sf{name} out")
    return DeviceSpeeds(speeds, bins)


def _check_devices(raw: RawTable, device: pl.Series, devices: int) -> None:
    """Each device of the cluster once, and no other."""
    odd = (device < 0) | (device >= devices) | (device != device.floor())
    if odd.any():
        row = int(odd.arg_true()[0])
        raise raw.error(
            f"the cluster has no device {device[row]:g}", row=row, field="gpu", fix=f"its {devices} devices are numbered from 0"
        )
    twice = device.is_duplicated()
    if twice.any():
        raise raw.error("stands in two rows", row=int(twice.arg_true()[-1]), field="gpu")
    if len(device) < devices:
        lacking = np.setdiff1d(np.arange(devices), device.to_numpy())
        raise raw.error(f"says nothing of device {lacking[0]}", fix=f"one row for each of the {devices} devices of the cluster")


def _check_nodes(raw: RawTable, device: pl.Series, cluster: Cluster) -> None:
    said = number(raw, "node", required=True).to_numpy()
    known = np.asarray(cluster.device_node)[device.to_numpy().astype(np.int64)]
    wrong = np.flatnonzero(said != known)
    if len(wrong):
        row = int(wrong[0])
        what = f"device {device[row]:g} is on node {known[row]} of the cluster, not {said[row]:g}"
        raise raw.error(what, row=row, field="node", fix="give the cluster that the table was measured on")


def _factors(raw: RawTable, name: str) -> pl.Series:
    values = number(raw, name, required=True)
    bad = (values <= 0) | values.is_nan()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise raw.error(
            f"a factor of {values[row]:g}", row=row, field=name, fix="1 is the usual device, 1.2 one that takes 1.2 times as long"
        )
    return values
