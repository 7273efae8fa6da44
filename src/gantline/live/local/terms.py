"""What a running job is told of its grant beside its devices: CPUs, memory, storage bandwidth, its part of each device, its shift.

A change is an order and no stop: ``terms.json`` in its folder is written anew, and a training loop reads it between two steps
(`gantline.train`).
"""

from __future__ import annotations

import math
import os

from gantline.engine.executor import Order
from gantline.live.local.files import make_private, write_json
from gantline.live.local.incarnation import Incarnation


def terms_of(order: Order) -> dict[str, float]:
    """What the grant says; what is left out is as the job asked for it."""
    if order.grant is None:
        return {}
    item = order.grant.assignment
    said = {"cpus": item.cpus, "memory": item.memory, "storage": item.storage, "memory_cap": item.memory_cap}
    found = {name: amount for name, amount in said.items() if math.isfinite(amount)}
    found |= {"fraction": item.fraction} if item.fraction != 1.0 else {}
    return found | ({"offset": item.offset} if item.offset else {})


def tell_terms(one: Incarnation, order: Order) -> dict[str, dict[str, float]]:
    """Write them where the job reads them, unless they are as they were; what is to be noted in its order."""
    terms = terms_of(order)
    if terms != one.order.get("terms", {}):
        make_private(one.folder)
        path = one.folder / "terms.json"
        write_json(str(path), terms, lasting=False)
        os.chmod(path, 0o644)  # the job may run as another account
    return {"terms": terms}
