"""Forecasts held against what Slurm then did: a folder of recordings, each job forecast when it is first seen waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gantline.core.errors import UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.files.policies import load_policy
from gantline.questions.forecast import Setup, forecast
from gantline.simulator.uncertainty import Uncertainty
from gantline.watch.slurm_recording import read_recording, record
from gantline.watch.slurm_snapshot import watched
from gantline.watch.slurm_state import SlurmState, read_state
from gantline.watch.watched import Document


@dataclass(frozen=True)
class HeldForecasts:
    """How many jobs had started by what was forecast; `open` have neither started nor passed their P90."""

    forecasts: int
    by_p50: int
    by_p90: int
    open: int
    recordings: int

    def as_json(self) -> Document:
        return {name: getattr(self, name) for name in ("forecasts", "by_p50", "by_p90", "open", "recordings")}

    def lines(self) -> list[str]:
        if not self.forecasts:
            return [f"{self.recordings} recordings: no job that waited has started since"]
        share = [f"{100 * count / self.forecasts:.0f} %" for count in (self.by_p50, self.by_p90)]
        found = [f"{self.forecasts} starts in {self.recordings} recordings: {share[0]} by their P50, {share[1]} by their P90"]
        return found + ([f"note: {self.open} more jobs have not started yet, nor passed their P90"] if self.open else [])


def keep_recordings(folder: Path, every: float, times: int, said: Callable[[str], None] = lambda text: None) -> None:
    """Record Slurm again and again; a look that fails is reported, and the next one is taken."""
    from gantline.core.errors import GantlineError

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
    started = _starts(states)
    seen: set[str] = set()
    counts, left = [0, 0, 0], 0
    for state in states:
        look = watched(state)
        new = [job["id"] for job in look.snapshot["jobs"] if not (job.get("devices") or job.get("node")) and job["id"] not in seen]
        seen.update(job.id for job in state.jobs)
        if not new:
            continue
        base = setup or Setup()
        shown = replace(base, uncertainty=Uncertainty(base.uncertainty.sigma, look.ratios))
        for one in forecast(decode_snapshot(look.snapshot), load_policy(look.policy, dict(look.settings)), new, shown):
            start, p50, p90 = started.get(one.job), one.start_p50 + look.zero + slack, one.start_p90 + look.zero + slack
            if start is None and states[-1].now <= p90:
                left += 1
                continue
            counts = [counts[0] + 1, counts[1] + (start is not None and start <= p50), counts[2] + (start is not None and start <= p90)]
    return HeldForecasts(counts[0], counts[1], counts[2], left, len(states))


def _starts(states: Iterable[SlurmState]) -> dict[str, float]:
    return {job.id: job.started for state in states for job in state.jobs if job.started is not None and job.state != "PENDING"}
