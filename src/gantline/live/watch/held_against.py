"""Forecasts held against what Slurm then did: a folder of recordings, each job forecast when it is first seen waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gantline.core.errors import GantlineError, UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.questions.forecast import Forecast, Setup, forecast
from gantline.live.watch.slurm_recording import read_recording, record
from gantline.live.watch.slurm_snapshot import WAITS, watched
from gantline.live.watch.slurm_state import SlurmJob, SlurmState, read_state
from gantline.live.watch.watched import ClusterLook, Document
from gantline.models.uncertainty import Uncertainty
from gantline.traces.files.policies import load_policy


@dataclass(frozen=True)
class HeldForecasts:
    """How many jobs had started by what was forecast."""

    forecasts: int
    by_p50: int
    by_p90: int
    due: int  # of them, those whose P90 has passed: an early start counts above although its P90 is still to come
    due_by_p90: int
    open: int  # they have neither started nor passed their P90
    gone: int  # between two recordings, or cancelled: when they started is not known
    recordings: int

    def as_json(self) -> Document:
        return asdict(self)

    def lines(self) -> list[str]:
        notes = [f"note: {self.open} more jobs have not started yet, nor passed their P90"] if self.open else []
        if self.gone:
            notes.append(f"note: {self.gone} more jobs were gone at a later recording, and none shows when they started")
        if not self.forecasts:
            return [f"{self.recordings} recordings: no job that waited has started since", *notes]
        share = [f"{100 * count / self.forecasts:.0f} %" for count in (self.by_p50, self.by_p90)]
        if self.due < self.forecasts:
            notes.insert(0, f"note: of {self.due} whose P90 has passed, {self.due_by_p90} came by it")
        return [f"{self.forecasts} starts in {self.recordings} recordings: {share[0]} by their P50, {share[1]} by their P90", *notes]


def keep_recordings(folder: Path, every: float, times: int, said: Callable[[str], None] = lambda text: None) -> None:
    """Record Slurm again and again; a look that fails is reported, and the next one is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(times):
        began = time.monotonic()
        try:
            text = record()
            stamp = text.partition("\n")[2].partition(" ")[0]
            (folder / f".{stamp}.new").write_text(text, encoding="utf-8")
            (folder / f".{stamp}.new").replace(folder / f"{stamp}.txt")
            said(f"{number + 1} of {times}: {folder / f'{stamp}.txt'}")
        except GantlineError as error:
            if number == 0:
                raise
            said(f"{number + 1} of {times}: {error}")
        if number + 1 < times:
            time.sleep(max(every - (time.monotonic() - began), 0.0))


def hold_against(folder: Path, setup: Setup | None = None, slack: float = 1.0) -> HeldForecasts:
    """Forecast every job that waits from the recording where it is first seen, and compare with its start; Slurm counts whole seconds."""
    files = sorted(folder.glob("*.txt"))
    if len(files) < 2:
        raise UsageError(
            f"it has {len(files)} recordings", where=str(folder), fix="make some: gantline watch slurm --record FOLDER --times 60"
        )
    states = sorted((read_state(read_recording(file), file.name) for file in files), key=lambda state: state.now)
    started, last = _starts(states), states[-1]
    waiting = {job.id for job in last.jobs if job.state in WAITS}
    earlier: dict[str, SlurmJob] = {}
    held: list[tuple[bool, bool, bool]] = []  # by its P50, by its P90, whether that has passed
    still_open = gone = 0
    base = setup or Setup()
    for number, state in enumerate(states):
        look = watched(state, earlier)
        new = [job["id"] for job in look.snapshot["jobs"] if not (job.get("devices") or job.get("node")) and job["id"] not in earlier]
        earlier.update((job.id, job) for job in state.jobs)
        until = last.now + slack - state.now  # what comes later is not seen
        own = replace(base, horizon=until, seed=base.seed + number)  # the same draws at every look would err the same way
        for one in look_forecasts(look, new, own):
            if one.unknown:
                continue  # no start was forecast
            start, p50, p90 = started.get(one.job), one.start_p50 + look.zero + slack, one.start_p90 + look.zero + slack
            if start is not None:
                held.append((start <= p50, start <= p90, p90 <= last.now))
            elif one.job not in waiting:
                gone += 1
            elif p90 >= last.now:
                still_open += 1
            else:
                held.append((False, False, True))
    by_p50, by_p90, due = (sum(one[at] for one in held) for at in range(3))
    due_by_p90 = sum(came and passed for _, came, passed in held)
    return HeldForecasts(len(held), by_p50, by_p90, due, due_by_p90, still_open, gone, len(states))


def look_forecasts(look: ClusterLook, jobs: list[str], setup: Setup) -> list[Forecast]:
    """As ``gantline forecast`` makes them: by the shares of their limits that jobs use, and with newcomers like the latest."""
    if not jobs:
        return []
    policy, snapshot = load_policy(look.policy, dict(look.settings)), decode_snapshot(look.snapshot)
    setup = replace(setup, uncertainty=Uncertainty(setup.uncertainty.sigma, look.ratios))
    if look.arrivals:
        setup = setup.with_newcomers(look.arrivals, snapshot, policy)
    return forecast(snapshot, policy, jobs, setup)


def _starts(states: Iterable[SlurmState]) -> dict[str, float]:
    jobs = (job for state in states for job in (*state.past, *state.jobs))
    return {job.id: job.started for job in jobs if job.started and job.state not in WAITS}  # zero: sacct did not say when
