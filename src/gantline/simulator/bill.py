"""What a run cost: device-hours of every type times their prices. A device that two jobs share is paid once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gantline.core.columns import Device, Node
from gantline.core.tables import Tables
from gantline.engine.log import Log
from gantline.models.prices import prices_of
from gantline.simulator.occupancy import busy_by_device


def bill(tables: Tables, log: Log, prices: Mapping[str, float], counted: Mapping[str, Any]) -> float:
    """Money for all devices held; a regime that counts device-seconds itself gives them."""
    names = [name for name in tables.cluster.types if tables.cluster.gpus_of(name)]
    seconds = counted.get("paid_device_seconds") or held_by_type(tables, log)
    return sum(seconds.get(name, 0.0) * price for name, price in zip(names, prices_of(names, prices))) / 3600.0


def held_by_type(tables: Tables, log: Log) -> dict[str, float]:
    """Device-seconds held of every type, shared ones once."""
    seconds = busy_by_device(log, tables.D.shape[1], -np.inf, np.inf, np.nan)
    kind = tables.NI[Node.TYPE][tables.D[Device.NODE]]
    by_type = np.bincount(kind, weights=seconds, minlength=len(tables.cluster.types))
    return dict(zip(tables.cluster.types, map(float, by_type)))
