"""Speeds that were not measured, estimated from those that were.

A job that was measured somewhere is placed elsewhere by how others differ between the two: seconds per step are completed as a thin matrix
of jobs x device counts on a logarithmic scale. A job that was measured nowhere is taken for the mean of its family. Ranges come from
leaving each measured entry out in turn: that is how far such an estimate has been off.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.models.profiles.bundle import Bundle, DeviceCount, Pairing, Profile, SampledLine, Speed, fit_line
from gantline.models.sharing.matrix_completion import complete

_UNKNOWN_FACTOR = 4.0  # where nothing can be left out to learn from


def refit(bundle: Bundle) -> Bundle:
    """The bundle with the lines of its measured entries fitted again, and without estimates."""
    jobs = {}
    for name, job in bundle.jobs.items():
        alone = {
            device_count: replace(speed, line=fit_line(speed.runs)) if speed.runs else speed
            for device_count, speed in job.alone.items()
            if speed.source == "measured"
        }
        pairs = {key: pairing for key, pairing in job.pairs.items() if pairing.source == "measured"}
        jobs[name] = replace(job, alone=alone, pairs=pairs)
    return replace(bundle, jobs=jobs)


def estimate_unmeasured(bundle: Bundle) -> Bundle:
    """The bundle with an estimate in every gap that anything is known about."""
    names, device_counts = list(bundle.jobs), bundle.device_counts
    if not names or not device_counts:
        return bundle
    table = np.full((len(names), len(device_counts)), np.nan)
    for i, name in enumerate(names):
        for device_count, speed in bundle.jobs[name].alone.items():
            if speed.source == "measured":
                table[i, device_counts.index(device_count)] = np.log(speed.line.seconds)
    known = ~np.isnan(table)
    if not known.any():
        return bundle
    guess, factor = _additive(table, known), _usual_factor(table, known)
    jobs = {}
    for i, name in enumerate(names):
        job, alone = bundle.jobs[name], {}
        family = [k for k, other in enumerate(names) if job.family and bundle.jobs[other].family == job.family and known[k].any()]
        for j, device_count in enumerate(device_counts):
            if known[i, j]:
                alone[device_count] = job.alone[device_count]
            elif known[i].any():
                alone[device_count] = _guessed(bundle, device_count, float(np.exp(guess[i, j])), factor, factor)
            elif family:
                likes = np.exp(guess[family, j])
                middle = float(np.exp(np.log(likes).mean()))
                alone[device_count] = _guessed(bundle, device_count, middle, factor * middle / likes.min(), factor * likes.max() / middle)
        jobs[name] = replace(job, alone=alone)
    return _with_pairs(replace(bundle, jobs=jobs))


def _guessed(bundle: Bundle, device_count: DeviceCount, seconds: float, below: float, above: float) -> Speed:
    """An estimate of seconds per step; a start takes what starts there take in the middle."""
    starts = [job.alone[device_count].line.startup for job in bundle.jobs.values() if device_count in job.alone]
    startup = float(np.median(starts)) if starts else 0.0
    return Speed(SampledLine(startup, seconds, seconds / below, seconds * above), (), "estimated")


def _additive(table: Floats, known: Bools) -> Floats:
    """A job's own pace plus a device count's, by alternating means; the matrix of rank one on the logarithmic scale."""
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
    """Ratios of pairs that were not measured, completed per device count from those that were."""
    names = list(bundle.jobs)
    found: dict[str, Profile] = dict(bundle.jobs)
    for kind, size in bundle.device_counts:
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
