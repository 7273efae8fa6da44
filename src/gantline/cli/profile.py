"""``gantline profile run|colocation|epochs|lives|fit|apply|show``: short runs of jobs on this machine's devices, and what they show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import yaml
from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import Column, Form, Sheet, say, show, show_text
from gantline.cli.live.connection import connect
from gantline.cli.replay import fold_home
from gantline.core.errors import UsageError
from gantline.live.jobs.spec_file import profiled, read_spec
from gantline.live.profiling.colocation_profiling import measure_colocation
from gantline.live.profiling.trials import Trials, measure_job, measure_pairs, time_epochs
from gantline.live.runners.local.devices import find_machine
from gantline.live.scheduler.replay import RecordedRun
from gantline.models.profiles.bundle import Bundle, Profile
from gantline.models.profiles.colocation_fit import spread_of_lives
from gantline.models.profiles.unmeasured import estimate_unmeasured, refit
from gantline.traces.files.policies import code_named
from gantline.traces.files.profiles import write_epochs
from gantline.traces.files.speeds import default_bundle, read_bundle, write_bundle

app = App(name="profile")
app.command("gantline.cli.allreduce:app", name="allreduce")
File = Annotated[str, Parameter(help="A bundle of profiles (JSON).")]
Devices = Annotated[str | None, Parameter(help="Devices, as h200:1,cpu:16; else what is found here.")]


@app.command(name="run")
def run_profile(
    name: str = "",
    /,
    *command: str,
    file: str = "profiles.json",
    devices: Devices = None,
    gpus: str = "1",
    steps: str = "10,60",
    repeats: int = 2,
    watch: str | None = None,
    total: float = 0.0,
    family: str = "",
    processes: str = "1",
    pairs: bool = False,
    seconds: str = "5s",
    limit: str = "10m",
    when_idle: bool = False,
    home: Path | None = None,
) -> None:
    """Make short runs of a job on each device type, and keep them.

    Two lengths give what a start costs and what a step takes (AlloX, EuroSys 2020); repeats give the error.

    Args:
        name: What the job is called: the model of a trace, the family of a specification.
        command: The command, after --. {steps} in it is replaced by the length of a run.
        file: The bundle to write to; other profiles in it stay.
        gpus: How many devices per run: 1, or 1,2,4 for a scaling curve.
        steps: The lengths of the short runs.
        repeats: How often each is made; two or more show the error.
        watch: Watch a job that uses gantline.train for so long instead, and measure stops and resumes as well.
        total: Steps of the whole job, where that is known.
        family: Jobs of one family are taken to be similar.
        processes: Processes per run: a number, or 'gpus' for one per device.
        pairs: Measure the pairs on GPUs that are missing in the file.
        seconds: How long each pair is watched.
        limit: When a run is given up.
        when_idle: Use devices of the running service, each when no job is on its node.
        home: The service's folder, for --when-idle.
    """
    machine = find_machine(devices)
    bundle = read_bundle(file) if Path(file).exists() else Bundle(devices=machine.cluster.spec)
    ranks = 0 if processes == "gpus" else _whole(processes, "--processes")
    trials = Trials(limit=time_of(limit, "--limit", above=True) or 600.0, processes=ranks)
    quiet = _idle_nodes(home) if when_idle else lambda node: nullcontext()
    if pairs:
        window = time_of(seconds, "--seconds", above=True) or 5.0
        for richer in measure_pairs(bundle, machine, trials, window, say, quiet):
            write_bundle(richer, file)
        return
    if not name or not command:
        raise UsageError("no job to profile", where="profile run", fix="gantline profile run NAME -- python train.py")
    lengths, sizes = _whole_list(steps, "--steps", least=0), _whole_list(gpus, "--gpus", least=1)
    watched = time_of(watch, "--watch", above=True) or 0.0
    how: dict[str, Any] = {"lengths": lengths, "sizes": sizes, "repeats": repeats, "watch": watched}
    profile = measure_job(name, command, machine, trials, **how, note=say, quiet=quiet)
    kept = bundle.jobs.get(name)
    write_bundle(bundle.with_profile(_named(profile, total, family, kept)), file)
    show_bundle(read_bundle(file), "table", only=name)


@app.command(name="colocation")
def profile_colocation(
    name: str,
    /,
    *command: str,
    file: str = "profiles.json",
    devices: Devices = None,
    gpus: str = "1",
    seconds: str = "3s",
    grace: str = "60s",
) -> None:
    """Measure how fast a job is beside others on its node.

    Gangs of it fill each node, and are watched beside none, half and all of the others. They run as a service would run them:
    what its runner adds to starts, stops and resumes is measured, too.

    Args:
        name: What the job is called: the model of a trace, the family of a specification.
        command: The command, after --. {steps} in it is replaced by the length of a run.
        file: The bundle to write to; other profiles in it stay.
        gpus: How many devices per gang: 1, or 1,2,4; each has a process per device.
        seconds: How long gangs are watched among the same others.
        grace: How long the job may take to save when it is stopped.
    """
    if not command:
        raise UsageError("no job to profile", where="profile colocation", fix="gantline profile colocation NAME -- python train.py {steps}")
    if "{steps}" not in " ".join(command):
        raise UsageError("the command has no {steps}: it could not end by itself", where="profile colocation", fix="write {steps} in it")
    machine, window = find_machine(devices), time_of(seconds, "--seconds", above=True) or 3.0
    bundle = read_bundle(file) if Path(file).exists() else Bundle(devices=machine.cluster.spec)
    known = bundle.jobs.get(name, Profile(name, command))
    wait = time_of(grace, "--grace", above=True) or 60.0
    for size in _whole_list(gpus, "--gpus", least=1):
        for kind, speed in measure_colocation(command, machine.cluster, size, window, wait, say).items():
            known = replace(known, alone={**known.alone, (kind, size): speed})
    if not known.alone:
        raise UsageError("no node has so many devices", where="--gpus", fix="ask for fewer")
    write_bundle(bundle.with_profile(known), file)
    show_bundle(read_bundle(file), "table", only=name)


@app.command(name="lives")
def learn_lives(
    homes: list[Path],
    /,
    *,
    file: str = "profiles.json",
    policy: list[str] | None = None,
) -> None:
    """Learn the spread of single jobs from jobs that ran: how far they lie from the mean of their kind.

    Args:
        homes: Folders of services that have run jobs of the bundle.
        file: The bundle to write to.
        policy: A policy that a service had from a file: code is loaded from here alone.
    """
    bundle, runs = read_bundle(file), [RecordedRun() for _ in homes]
    for home, run in zip(homes, runs):
        fold_home(home, run=run, code=code_named(*policy or ()))
    found = spread_of_lives([[life for life in run.lives if life.kind in bundle.jobs] for run in runs])
    write_bundle(replace(bundle, lives=found), file)
    least, most = min(found), max(found)
    say(f"{len(found)} lives, speeds {least:.2f} to {most:.2f} times the mean of their kind: written to {file}")


@app.command(name="epochs")
def profile_epochs(
    name: str,
    /,
    *command: str,
    data: float,
    steps: float,
    bandwidth: float,
    cpus: int,
    gpus: int = 1,
    to: Path = Path("profiles"),
    limit: str = "1h",
) -> None:
    """Time epochs of a job with fewer and fewer CPUs.

    '--performance sensitivity --profiles FOLDER' reads them.

    Only CPUs are measured; memory and storage are computed (optimistic profiling; Synergy, OSDI 2022).

    Args:
        name: What the job is called: the model of a trace.
        command: The command that runs one epoch, after --. {cpus} in it is replaced by the number of CPUs.
        data: GB that an epoch reads.
        steps: Steps of an epoch.
        bandwidth: MB/s at which data are read from memory.
        cpus: The most CPUs that the job is to have.
        gpus: The GPUs that the command uses; CPUs are counted for each.
        to: The folder whose epochs.csv is written to; other networks in it stay.
        limit: When a run is given up.
    """
    if not command:
        raise UsageError("no epoch to run", where="profile epochs", fix="gantline profile epochs NAME ... -- python epoch.py {cpus}")
    for said, value in (("--data", data), ("--steps", steps), ("--bandwidth", bandwidth), ("--gpus", gpus)):
        if not 0 < value < float("inf"):
            raise UsageError(f"{value:g} is not above zero", where=said)
    if cpus < gpus:
        raise UsageError(f"{cpus} CPUs for {gpus} GPUs", where="--cpus", fix="give one per GPU at least")
    seconds = time_epochs(command, cpus, gpus, time_of(limit, "--limit", above=True) or 3600.0, say)
    written = write_epochs(to, name, {count / gpus: each for count, each in seconds.items()}, data, bandwidth, steps)
    say(f"note: wrote {len(seconds)} rows of '{name}' to {written}")


@app.command(name="fit")
def fit_profiles(file: File, /, *, to: str | None = None) -> None:
    """Fit a bundle again, and estimate what was not measured in it.

    Args:
        to: Where to write; else into the same file.
    """
    bundle = estimate_unmeasured(refit(read_bundle(file)))
    write_bundle(bundle, to or file)
    show_bundle(bundle, "table")


@app.command(name="apply")
def apply_profile(
    spec: str,
    /,
    *,
    file: str | None = None,
    worst: float = 12.0,
) -> None:
    """Write into a specification what profiles know: types with their speeds and an estimate; for 'gantline submit'.

    The job's profile is that of its model, or of its name.

    Args:
        spec: A job's specification (YAML).
        file: A bundle; else the profiles that come with the product.
        worst: A type on which the job is slower than on its best by more than this is not offered.
    """
    known = profiled(read_spec(Path(spec)), read_bundle(file) if file else default_bundle(), worst)
    show_text(yaml.safe_dump(known.to_json(), sort_keys=False).rstrip())


@app.command(name="show")
def show_profiles(
    file: str | None = None,
    /,
    *,
    output: Form = "table",
) -> None:
    """Show how fast jobs are on each device type, with ranges.

    Args:
        file: A bundle (JSON); else the profiles that come with the product.
    """
    show_bundle(read_bundle(file) if file else default_bundle(), output)


def show_bundle(bundle: Bundle, output: Form, only: str = "") -> None:
    """One row per job and device count, then one per pair."""
    rows: list[tuple[Any, ...]] = []
    for job in bundle.jobs.values():
        if only and job.name != only:
            continue
        for (kind, size), speed in job.alone.items():
            line = speed.line
            high = 1.0 / line.low if line.low > 0 else float("inf")
            rows.append((job.name, kind, size, "", line.rate, 1.0 / line.high, high, line.startup, speed.source))
        for (kind, size, other), pairing in job.pairs.items():
            alone = job.alone.get((kind, size))
            rate = alone.line.rate * pairing.ratio if alone is not None else float("nan")
            rows.append((job.name, kind, size, other, rate, float("nan"), float("nan"), float("nan"), pairing.source))
    numbers = [Column(name, right=True, spell=_digits) for name in ("steps_per_s", "low", "high", "startup_s")]
    heads = (
        Column("job"),
        Column("type"),
        Column("gpus", right=True),
        Column("next_to"),
        *numbers,
        Column("source"),
    )
    show(Sheet(heads, rows), output)


def _idle_nodes(home: Path | None) -> Callable[[str], AbstractContextManager[None]]:
    """How to wait for a node of the running service, and to keep it for a while."""
    client = connect(home)
    return lambda node: idle_node(client, node, say)


def _digits(value: float) -> str:
    return "" if value != value else f"{value:.4g}"


def _named(profile: Any, total: float, family: str, kept: Any) -> Any:
    """The new profile, with what an earlier one of that name said beside it."""
    if kept is None:
        return replace(profile, steps=total, family=family)
    return replace(
        profile,
        steps=total or kept.steps,
        family=family or kept.family,
        alone={**kept.alone, **profile.alone},
        pairs=kept.pairs,
    )


def _whole(text: str, where: str, least: int = 1) -> int:
    if not text.strip().isdigit() or int(text) < least:
        raise UsageError(f"'{text}' is not a whole number of {least} or more", where=where)
    return int(text)


def _whole_list(text: str, where: str, least: int) -> list[int]:
    found = sorted({_whole(part, where, least) for part in text.split(",")})
    if where == "--steps" and len(found) < 2:
        raise UsageError("runs of one length show no speed", where=where, fix="write two lengths, such as 10,60")
    return found


# Devices of a running service in their idle time: no job is on a node, and none may come until we are done.

_LOOK = 1.0  # seconds between checks


@contextmanager
def idle_node(client: Any, name: str, say: Callable[[str], None], look: float = _LOOK) -> Iterator[None]:
    """Wait until no job is on a node, and keep it so: it is cordoned meanwhile. A node that the service does not have is free to use."""
    reported = False
    while True:
        node = _node(client, name)
        if node is None:
            yield
            return
        if node["state"] == "up" and not node["busy"]:
            client.cordon(name)
            if not _node(client, name)["busy"]:
                break
            client.uncordon(name)  # a job came first
        if not reported:
            say(f"waiting until no job is on {name}")
            reported = True
        time.sleep(look)
    try:
        yield
    finally:
        client.uncordon(name)


def _node(client: Any, name: str) -> Any:
    return next((node for node in client.nodes() if node["name"] == name), None)
