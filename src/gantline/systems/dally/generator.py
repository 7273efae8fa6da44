"""A workload for delay scheduling: gangs of 1 to 64 GPUs, of which a part spends much of its time on the network.

An iteration of a network-heavy job takes two to five times as long across racks as on one machine, and a quarter of that excess within a
rack; others lose 2 and 5 %. Heavy networks are those with one dominating tensor. ``slow`` multiplies what crossing racks adds: with half
the bandwidth it is 2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from gantline.systems.dally.models import NETWORK, RACK
from gantline.traces.generators.generic import generic
from gantline.traces.generators.given import fault, number, read_given
from gantline.traces.trace import Trace

_SIZES = "1:0.1,4:0.15,12:0.2,24:0.25,48:0.25,64:0.05"
_HEAVY = {"alexnet": 2.0, "vgg19": 3.0, "vgg16": 4.0, "vgg11": 5.0}  # times that an iteration takes across racks
_OTHER = "resnet50"
_IN_RACK = 0.25  # of what crossing racks adds
_LIGHT = (1.02, 1.05)
_OWN = ("heavy", "slow")


def dally(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``dally``: settings of ``generic``, and ``heavy`` (part of the jobs) and ``slow``."""
    own = {"heavy": 0.5, "slow": 1.0} | read_given({name: given[name] for name in _OWN if name in given}, dict.fromkeys(_OWN, number))
    if not 0.0 <= own["heavy"] <= 1.0:
        raise fault("heavy", f"{own['heavy']:g} is not a part of the jobs, from 0 to 1")
    if not 0.0 < own["slow"] < float("inf"):
        raise fault("slow", f"{own['slow']:g} is not above zero")
    rest = {name: value for name, value in given.items() if name not in _OWN}
    trace = generic(seed, {"sizes": _SIZES} | rest)
    rng = np.random.default_rng([seed, len(_HEAVY)])
    kind = np.where(rng.random(len(trace)) < own["heavy"], rng.integers(0, len(_HEAVY), len(trace)), -1)
    across = np.array([*(1.0 + own["slow"] * (times - 1.0) for times in _HEAVY.values()), _LIGHT[1]])
    within = np.minimum([*(1.0 + _IN_RACK * (times - 1.0) for times in _HEAVY.values()), _LIGHT[0]], across)
    names = [*_HEAVY, _OTHER]  # kind -1 is the last one
    columns = {"model": [names[k] for k in kind.tolist()], RACK: within[kind], NETWORK: across[kind]}
    frame = trace.frame.with_columns(pl.Series(name, column) for name, column in columns.items())
    return Trace(frame, source=f"generated: dally, seed {seed}")
