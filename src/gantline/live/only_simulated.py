"""Options of a simulation that a service does not have, each with the reason that a refusal gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from gantline.core.errors import GantlineError

#: option -> why a service does not have it
ONLY_SIMULATED = {
    "estimates": "a live service estimates work from what jobs declare and report",
    "end_by": "ends jobs by the loss curves of a trace; a service has the same rule for the losses that jobs report",
    "latency": "a live decision takes the time that it takes",
    "executor": "orders are carried out by processes; gantline up --executor names what starts them",
    "track": "a measurement over a finished trace",
    "until": "a service runs until it is stopped",
    "node_events": "nodes change when they change",
    "reserve": "reserved while it runs, by gantline reserve",
    "throughputs": "speeds of a trace's job types",
    "performance": "how fast jobs run is measured while they do",
    "scaling": "what jobs show is what is known",
    "across_nodes": "belongs to throughputs",
    "budget": "the loop goes on while a live policy thinks",
    "checkpoint": "the store keeps the state",
    "checkpoint_every": "the store keeps the state",
    "resume": "the store keeps the state",
    "warmup": "a measurement over a finished trace",
    "carbon": "series of carbon intensity are read in simulations",
    "electricity": "counts the energy of a finished run",
    "power": "counts the energy of a finished run",
    "series_start": "belongs to carbon and electricity",
    "device_speeds": "tables of speeds are read in simulations",
    "locality": "belongs to device_speeds",
    "profiles": "a folder of training profiles; a live scheduler takes a bundle of measured ones",
}


@contextmanager
def without_simulated_options() -> Iterator[None]:
    """A refusal that offers an option which only a simulation has says so."""
    try:
        yield
    except GantlineError as error:
        for option in re.findall(r"--([a-z-]+)", error.fix):
            if why := ONLY_SIMULATED.get(option.replace("-", "_")):
                error.where, error.fix = "", f"a service has no --{option}: {why}"
        raise
