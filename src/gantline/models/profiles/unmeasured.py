"""Speeds that were not measured, estimated from those that were.

A job that was measured somewhere is placed elsewhere by how others differ between the two: seconds per step are completed as a thin matrix
of jobs x seats on a logarithmic scale. A job that was measured nowhere is taken for the mean of its family. Ranges come from
leaving each measured entry out in turn: that is how far such an estimate has been off.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.models.profiles.bundle import Bundle, Pairing, Profile, SampledLine, Seat, Speed, fit_line
from gantline.models.sharing.matrix_completion import complete

_UNKNOWN_FACTOR = 4.0  # where nothing can be left out to learn from


def refit(bundle: Bundle) -> Bundle:
    """The bundle with the lines of its measured entries fitted again, and without estimates."""
    jobs = {}
    for name, job in bundle.jobs.items():
        alone = {
            seat: replace(speed, line=fit_line(speed.runs)) if speed.runs else speed
            for seat, speed in job.alone.items()
            if speed.source == "measured"
        }
        pairs = {key: pairing for key, pairing in job.pairs.items() if pairing.source == "measured"}
        jobs[name] = replace(job, alone=alone, pairs=pairs)
    return replace(bundle, jobs=jobs)


def estimate_unmeasured(bundle: Bundle) -> Bundle:
    """The bundle with an estimate in every gap that anything is known about."""
    names, seats = list(bundle.jobs), bundle.seats
    if not names or not seats:
        return bundle
    table = np.full((len(names), len(seats)), np.nan)
    for i, name in enumerate(names):
        for seat, speed in bundle.jobs[name].alone.items():
            if speed.source == "measured":
                table[i, seats.index(seat)] = np.log(speed.line.seconds)
    known = ~np.isnan(table)
    if not known.any():
        return bundle
    guess, factor = _additive(table, known), _usual_factor(table, known)
    jobs = {}
    for i, name in enumerate(names):
        job, alone = bundle.jobs[name], {}
        family = [k for k, other in enumerate(names) if job.family and bundle.jobs[other].family == job.family and known[k].any()]
        for j, seat in enumerate(seats):
            if known[i, j]:
                alone[seat] = job.alone[seat]
            elif known[i].any():
                alone[seat] = _guessed(bundle, seat, float(np.exp(guess[i, j])), factor, factor)
            elif family:
                likes = np.exp(guess[family, j])
                middle = float(np.exp(np.log(likes).mean()))
                alone[seat] = _guessed(bundle, seat, middle, factor * middle / likes.min(), factor * likes.max() / middle)
        jobs[name] = replace(job, alone=alone)
    return _with_pairs(replace(bundle, jobs=jobs))


def _guessed(bundle: Bundle, seat: Seat, seconds: float, below: float, above: float) -> Speed:
    """An estimate of seconds per step; a start takes what starts on that seat take in the middle."""
    starts = [job.alone[seat].line.startup for job in bundle.jobs.values() if seat in job.alone]
    startup = float(np.median(starts)) if starts else 0.0
    return Speed(SampledLine(startup, seconds, seconds / below, seconds * above), (), "estimated")


def _additive(table: Floats, known: Bools) -> Floats:
    """A job's own pace plus a seat's, by alternating means; the matrix of rank one on the logarithmic scale."""
    filled = np.where(known, table, 0.0)
    rows, columns = np.zeros(table.shape[0]), np.zeros(table.shape[1])
    for _ in range(200):
        rows = np.where(known, filled - columns, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        columns = np.where(known, filled - rows[:, None], 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.asarray(rows[:, None] + columns[None, :])


def _usual_factor(table: Floats, known: Bools) -> float:
    """By what factor such estimates have been off, nine times out of ten."""
    off = []
    for i, j in np.argwhere(known):
        rest = known.copy()
        rest[i, j] = False
        if rest[i].any() and rest[:, j].any():
            off.append(abs(float(_additive(table, rest)[i, j] - table[i, j])))
    return float(np.exp(np.quantile(off, 0.9))) if off else _UNKNOWN_FACTOR


def _with_pairs(bundle: Bundle) -> Bundle:
    """Ratios of pairs that were not measured, completed per seat from those that were."""
    names = list(bundle.jobs)
    found: dict[str, Profile] = dict(bundle.jobs)
    for kind, size in bundle.seats:
        ratio = np.full((len(names), len(names)), np.nan)
        for i, name in enumerate(names):
            for (at, gpus, other), pairing in bundle.jobs[name].pairs.items():
                if (at, gpus) == (kind, size) and pairing.source == "measured":
                    ratio[i, names.index(other)] = pairing.ratio
        known = ~np.isnan(ratio)
        if not known.any():
            continue
        guess = np.clip(complete(np.nan_to_num(ratio), known, rank=1), 0.0, 1.0)
        for i, name in enumerate(names):
            pairs = dict(found[name].pairs)
            for j, other in enumerate(names):
                if not known[i, j]:
                    pairs[kind, size, other] = Pairing(float(guess[i, j]), "estimated")
            found[name] = replace(found[name], pairs=pairs)
    return replace(bundle, jobs=found)
