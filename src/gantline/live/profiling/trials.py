"""Short runs of real programs: a job's command for so many steps on one place, alone or next to another job.

A command says where the number of steps goes with ``{steps}``, or uses `gantline.train`, which reads it from its environment. Every run
has a folder of its own that is removed afterwards, its own process group, and a limit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gantline.core.errors import GantlineError, RefusedError, UsageError
from gantline.core.slices import is_slice
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.devices import Machine
from gantline.live.runners.local.orders import common_environment, rank_environments
from gantline.models.profiles.bundle import Bundle, Pairing, Profile, Speed, fit_line, two_points
from gantline.models.sensitivity import measure_epochs
from gantline.train.store import Checkpoints

_ENDLESS = 10**9  # steps
_LOOK = 0.01  # seconds between checks whether a process has ended


@dataclass(frozen=True, slots=True)
class Place:
    """Devices that a run gets."""

    type: str
    gpus: int
    cuda: tuple[str, ...] = ()  # what CUDA calls them; empty: CPU slots
    first: int = 0  # the number of the first one among those of its type

    @classmethod
    def on(cls, machine: Machine, kind: str, gpus: int, first: int = 0) -> Place:
        """Devices of a type of this machine, from one on."""
        if is_slice(kind):
            what = f"'{kind}' is a slice, and these runs know only whole devices"
            raise RefusedError(what, where="--devices", fix="gantline profile colocation, which measures on the runner")
        held = {node.type: node for node in machine.cluster.nodes}
        if kind not in held or held[kind].gpus < first + gpus:
            have = ", ".join(f"{node.type}:{node.gpus}" for node in held.values())
            raise UsageError(f"no {gpus} x '{kind}' here", where="--devices", fix=f"there are {have}")
        names = (machine.cuda_of(held[kind].name, place) for place in range(first, first + gpus))
        return cls(kind, gpus, tuple(name for name in names if name is not None), first)


@dataclass(frozen=True)
class Trials:
    """How runs are made."""

    limit: float = 600.0  # seconds after which a run is given up
    env: Mapping[str, str] = field(default_factory=dict)
    processes: int = 1  # per run; 0: one per device
    warmup: float = 0.5  # seconds before speeds that are watched count
    turn: AbstractContextManager[Any] = field(default_factory=nullcontext)  # held while a job that is watched starts: a lock, for example

    def alone(self, command: Sequence[str], place: Place, lengths: Sequence[int], repeats: int = 2) -> Speed:
        """How fast a job is on its own: runs of each length, as often as asked for, and the line through them."""
        runs = [(float(steps), self.run(command, place, steps)) for _ in range(repeats) for steps in lengths]
        return Speed(fit_line(runs), tuple(runs))

    def run(self, command: Sequence[str], place: Place, steps: int) -> float:
        """Seconds that one run of so many steps takes from its start to its end."""
        with self._started(command, place, steps) as trial:
            self._until_over(trial)
            seconds = trial.age
            trial.check()
            if "{steps}" not in " ".join(command) and not trial.log.exists():
                raise UsageError(
                    "the command takes no notice of the number of steps", where=command[0], fix="write {steps} in it, or use gantline.train"
                )
            return seconds

    def watched(self, command: Sequence[str], place: Place, seconds: float, repeats: int = 2) -> Speed:
        """How fast a job is and what its starts and stops cost, from few starts, each of them watched through the steps that it notes.

        The job must use `gantline.train`. It starts, trains for a moment, gets SIGTERM, and is started again from what it has saved for
        about so many seconds of training; then it is started afresh for as long, as often as asked for. Write ``{steps}`` in the command to
        let it end by itself, as it will under the scheduler: a last checkpoint then counts, too.
        """
        with self._folder() as folder:
            with self._training(command, place, _ENDLESS, folder) as trial:
                ((begun, before), (ended, made)) = self._watch([trial], min(seconds, 1.0))[0]
                signalled = time.monotonic()
                trial.send(signal.SIGTERM)
                self._until_over(trial)
                leave = time.monotonic() - signalled
            steps = max(round((made - before) / (ended - begun) * seconds), 3)
            saved = Checkpoints(folder / "checkpoint", 0).state().get("step", 0)
            resumed = self._watched_run(command, place, steps, folder, saved)
        runs = [point for _ in range(repeats) for point in self._watched_run(command, place, steps)]
        line = fit_line(runs)
        resume = sum(taken - steps * line.seconds for steps, taken in resumed) / len(resumed)
        return Speed(line, tuple(runs), leave=leave, resume=max(0.0, resume))

    def _watched_run(
        self, command: Sequence[str], place: Place, steps: int, kept: Path | None = None, done: int = 0
    ) -> list[tuple[float, float]]:
        """One run of so many steps, and the same run as if it had ended early: two points of its line, with one start between them."""
        with self._training(command, place, steps, kept, done) as trial:
            self._until_over(trial)
            total = trial.age
            trial.check()
            return two_points(trial.notes(), steps, total)

    def pair(self, one: Sequence[str], other: Sequence[str], place: Place, alone: tuple[float, float], seconds: float) -> list[Pairing]:
        """How fast two jobs are on the same devices at once, over their steps per second alone; watched for so many seconds.

        Both must use `gantline.train`, which notes its steps.
        """
        with self._started(one, place, _ENDLESS) as first, self._started(other, place, _ENDLESS) as second:
            seen = self._watch([first, second], seconds)
        speeds = [(made - before) / (now - then) for (then, before), (now, made) in seen]
        return [Pairing(speed / usual) for speed, usual in zip(speeds, alone)]

    def _watch(self, trials: Sequence[_Trial], seconds: float) -> list[tuple[tuple[float, int], tuple[float, int]]]:
        """Notes (time, steps) of each at the beginning and at the end of a time in which all of them train."""
        self._until_training(trials)
        time.sleep(self.warmup)
        begun = [trial.steps() for trial in trials]
        while any(trial.steps()[0] - start[0] < seconds for trial, start in zip(trials, begun)):
            self._check_running(trials)
            time.sleep(_LOOK)
        return [(start, trial.steps()) for trial, start in zip(trials, begun)]

    def _until_training(self, trials: Sequence[_Trial]) -> None:
        while not all(trial.steps()[1] for trial in trials):
            self._check_running(trials)
            time.sleep(_LOOK)

    def _until_over(self, trial: _Trial) -> None:
        while trial.is_running:
            if trial.age >= self.limit:
                raise RefusedError(f"took more than {self.limit:g} s", where=trial.name, fix="fewer steps, or a higher --limit")
            time.sleep(_LOOK)

    def _check_running(self, trials: Sequence[_Trial]) -> None:
        for trial in trials:
            if not trial.is_running:
                trial.check()
                raise RefusedError("ended while it was watched", where=trial.name, fix="a job that is watched must train for a while")
            if trial.age > self.limit:
                raise RefusedError(
                    f"noted no step within {self.limit:g} s", where=trial.name, fix="pairs are measured through gantline.train"
                )

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="gantline-trial-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _training(self, command: Sequence[str], place: Place, steps: int, kept: Path | None = None, done: int = 0) -> Iterator[_Trial]:
        """A run that has made its first step; where several places are used at once, they start in turn."""
        with ExitStack() as stack:
            with self.turn:
                trial = stack.enter_context(self._started(command, place, steps, kept, done))
                self._until_training([trial])
            yield trial

    @contextmanager
    def _started(self, command: Sequence[str], place: Place, steps: int, kept: Path | None = None, done: int = 0) -> Iterator[_Trial]:
        """A run in a folder of its own, or in one that is kept for the next, which finds so many steps done there."""
        with nullcontext(kept) if kept is not None else self._folder() as folder:
            trial = self._begun(command, place, steps, folder, done)
            try:
                yield trial
            finally:
                trial.end()

    def _begun(self, command: Sequence[str], place: Place, steps: int, folder: Path, done: int) -> _Trial:
        variables = {
            "GANTLINE_CHECKPOINT": str(folder / "checkpoint"),
            "GANTLINE_GPUS": str(place.gpus),
            "GANTLINE_DEVICES": ",".join(f"{place.type}:{place.first + k}" for k in range(place.gpus)),
            "GANTLINE_TRIAL_STEPS": str(steps),
            "GANTLINE_TRIAL_LOG": str(folder / "steps"),
        }
        words = [word.replace("{steps}", str(done + steps)) for word in command]
        (folder / "steps").unlink(missing_ok=True)
        trial = _Trial(command[0], folder)
        shared = common_environment(self.env, variables, place.cuda)
        try:
            with open(folder / "log", "wb") as log:
                for own in rank_environments(Launch((), processes=self.processes), place.gpus):
                    trial.begin(words, {**shared, **own}, log.fileno())
        except BaseException:
            trial.end()
            raise
        return trial


class _Trial:
    """A run in progress."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.log = name, folder, folder / "steps"
        self._begun = time.monotonic()
        self._ranks: list[subprocess.Popen[bytes]] = []

    def begin(self, words: Sequence[str], env: Mapping[str, str], log: int) -> None:
        """Start one rank."""
        try:
            rank = subprocess.Popen(
                words, env=dict(env), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise RefusedError(f"cannot be started: {error.strerror}", where=self.name, fix="is it installed and executable?") from None
        self._ranks.append(rank)

    @property
    def is_running(self) -> bool:
        return any(rank.poll() is None for rank in self._ranks)

    @property
    def age(self) -> float:
        return time.monotonic() - self._begun

    def send(self, number: int) -> None:
        """Send a signal to all ranks."""
        for rank in self._ranks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(rank.pid, number)

    def steps(self) -> tuple[float, int]:
        """When the newest note was made, and how many steps there were."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            last = self.log.read_bytes().split(b"\n")[-2]  # behind the last line's end is nothing
            now, made = last.split()
            return float(now), int(made)
        return 0.0, 0

    def notes(self) -> list[tuple[float, int]]:
        """All notes: seconds since the start, and how many steps there were."""
        lines = (line.split() for line in self.log.read_text(encoding="ascii").splitlines())
        return [(float(now) - self._begun, int(made)) for now, made in lines]

    def check(self) -> None:
        """Refuse a run that failed, with the end of its output."""
        codes = [rank.returncode for rank in self._ranks if rank.returncode]
        if codes:
            lines = (self.folder / "log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
            raise RefusedError(
                f"ended with code {codes[0]}: {' / '.join(lines)}", where=self.name, fix="run it without gantline to see why"
            )

    def end(self) -> None:
        """End what still runs, with all that it started."""
        for rank in self._ranks:
            if rank.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(rank.pid, signal.SIGKILL)
            rank.wait()


# Which short runs to make: a job on each device type and size, and the pairs that share a device.

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


# Epochs of a job with fewer and fewer CPUs, timed on this machine: optimistic profiling (Synergy, OSDI 2022, section 3.1).

CPUS = "{cpus}"


class EpochFailedError(GantlineError):
    """A run of one epoch did not end well."""


def time_epochs(command: Sequence[str], cpus: int, gpus: int, limit: float, note: Callable[[str], None]) -> dict[int, float]:
    """Seconds per epoch by CPUs in all. The command runs one epoch; it is bound to so many CPUs, and told how many in place of {cpus}."""
    usable = sorted(os.sched_getaffinity(0))
    if cpus > len(usable):
        raise UsageError(f"{cpus} CPUs are to be used, and this process may use {len(usable)}", where="--cpus", fix="ask for fewer")

    def measure(count: int) -> float:
        seconds = _time_one([part.replace(CPUS, str(count)) for part in command], usable, count, limit)
        note(f"{count} CPUs: {seconds:.3g} s")
        return seconds

    return measure_epochs(measure, cpus, gpus)


def _time_one(command: list[str], usable: list[int], count: int, limit: float) -> float:
    began = time.perf_counter()
    os.sched_setaffinity(0, usable[:count])  # of this thread; the program inherits it
    try:
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise EpochFailedError(f"an epoch with {count} CPUs took longer than {limit:g} s", where="--limit", fix="allow more") from None
    except OSError as error:
        raise EpochFailedError(f"cannot run {command[0]}: {error.strerror}", where="profile epochs", fix="name a program") from None
    finally:
        os.sched_setaffinity(0, usable)
    if ended.returncode:
        last = (ended.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
        what = f"an epoch with {count} CPUs ended with exit code {ended.returncode}" + (f": {last}" if last else "")
        raise EpochFailedError(what, where="profile epochs", fix="mend the command and run this again")
    return time.perf_counter() - began
