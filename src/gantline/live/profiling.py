"""Which short runs to make: a job on each device type and size, and the pairs that share a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from gantline.core.errors import RefusedError
from gantline.live.local.devices import Machine
from gantline.live.trials import Place, Trials
from gantline.models.profiles.bundle import Bundle, Profile

Note = Callable[[str], None]
Quiet = Callable[[str], AbstractContextManager[None]]  # while it is entered, no job uses the node of that name


def measure_job(
    name: str,
    command: Sequence[str],
    machine: Machine,
    trials: Trials,
    *,
    lengths: Sequence[int],
    sizes: Sequence[int],
    repeats: int,
    note: Note,
    quiet: Quiet = lambda node: nullcontext(),
    watch: float = 0.0,
) -> Profile:
    """Run a job alone on every type of the machine with each number of devices that it has.

    `watch`: instead of runs of two lengths, watch it for about so many seconds of training each, and see what stops and resumes take.
    """
    alone = {}
    for node in machine.cluster.nodes:
        for size in sizes:
            if size > node.gpus:
                continue
            how = f"{repeats + 2} starts" if watch else f"{repeats * len(lengths)} runs of {', '.join(map(str, lengths))} steps"
            note(f"{name} on {size} x {node.type}: {how}")
            place = Place.on(machine, node.type, size)
            with quiet(node.name):
                speed = trials.watched(command, place, watch, repeats) if watch else trials.alone(command, place, lengths, repeats)
                alone[node.type, size] = speed
    if not alone:
        raise RefusedError(f"no type has {min(sizes)} devices", where="profile", fix="ask for fewer with --gpus")
    return Profile(name, tuple(command), alone=alone)


def measure_pairs(
    bundle: Bundle, machine: Machine, trials: Trials, seconds: float, note: Note, quiet: Quiet = lambda node: nullcontext()
) -> Iterator[Bundle]:
    """Run every pair of jobs that was not measured on every GPU type; the bundle comes back after each, so that nothing is lost."""
    for node in machine.cluster.nodes:
        if not machine.cuda.get(node.name):
            continue  # CPU slots are not shared: each is a core
        names = [job.name for job in bundle.jobs.values() if job.command and (node.type, 1) in job.alone]
        for i, name in enumerate(names):
            for other in names[i:]:
                if (node.type, 1, other) in bundle[name].pairs:
                    continue
                note(f"{name} next to {other} on {node.type}")
                one, two = bundle[name], bundle[other]
                rates = (one.alone[node.type, 1].line.rate, two.alone[node.type, 1].line.rate)
                place = Place.on(machine, node.type, 1)
                with quiet(node.name):
                    first, second = trials.pair(one.command, two.command, place, rates, seconds)
                if other == name:  # two of a kind
                    first = replace(first, ratio=(first.ratio + second.ratio) / 2)
                bundle = bundle.with_profile(replace(one, pairs={**one.pairs, (node.type, 1, other): first}))
                if other != name:
                    two = bundle[other]
                    bundle = bundle.with_profile(replace(two, pairs={**two.pairs, (node.type, 1, name): second}))
                yield bundle
