"""Names that distinguish runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gantline.lab.report.doubts import MARK, doubts_of_run
from gantline.lab.report.frames import RunLike

TELLING = ("settings", "placement", "admission", "regime", "round", "estimates", "cluster", "trace", "seed")


def names_of(runs: Sequence[RunLike]) -> list[str]:
    """A distinct name for each run: its name or its policy, and where two runs share that, what else differs; doubtful runs are marked."""
    bases = [str(run.summary.get("name") or run.summary.get("policy") or "run") for run in runs]
    facts = [_facts(run.summary) for run in runs]
    names: list[str] = []
    for base, own in zip(bases, facts):
        twins = [other for name, other in zip(bases, facts) if name == base]
        telling = [key for key in own if any(other.get(key) != own[key] for other in twins)]
        full = " ".join([base, *(f"{key}={own[key]}" for key in telling)])
        name, copy = full, 1
        while name in names:
            copy += 1
            name = f"{full} #{copy}"
        names.append(name)
    return [name + (MARK if doubts_of_run(run) else "") for name, run in zip(names, runs)]


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """What may distinguish two runs of a policy, the settings one by one."""
    found: dict[str, str] = {}
    for key in TELLING:
        value = summary.get(key)
        if isinstance(value, Mapping):
            found.update({str(name): str(item) for name, item in value.items()})
        elif value is not None:
            found[key] = str(value)
    return found
