"""An experiment: a grid with a title and what to compare, as a value that a file can hold."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gantline.lab.experiment.compare import METRICS
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.relocate import Move, move_policy, move_setting
from gantline.lab.experiment.setting import MANY
from gantline.lab.experiment.whole_files import write_text

VERSION = 1
RUN_FIELDS = tuple(name for name in MANY if name != "seed")  # seeds are many


@dataclass(frozen=True)
class Experiment:
    """What to run and what to compare."""

    grid: Grid
    title: str = ""
    against: str = ""
    metrics: tuple[str, ...] = METRICS
    confidence: float = 0.95

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """The experiment as the mapping of a file; paths are seen from `folder`."""

        def move(path: str) -> str:
            return os.path.relpath(path, folder) if folder else path

        base = move_setting(self.grid.base, move)
        run = {key: value for key, value in base.to_dict().items() if key in RUN_FIELDS}
        found: dict[str, Any] = {"version": VERSION, "title": self.title, "trace": base.trace.to_dict(), "cluster": base.cluster}
        found["policies"] = [_policy_entry(choice, move) for choice in self.grid.policies]
        found |= {
            "loads": list(self.grid.loads),
            "seeds": list(self.grid.seeds),
            "vary": {k: list(v) for k, v in self.grid.vary.items()},
            **run,
        }
        if len(self.grid.policies) > 1:
            found["compare"] = {"against": self.against, "metrics": list(self.metrics), "confidence": self.confidence}
        return {key: value for key, value in found.items() if value not in ("", [], {})}


def write_experiment(experiment: Experiment, path: Path) -> Path:
    """Write the experiment so that it can be run again from there."""
    return write_text(path, yaml.safe_dump(experiment.to_dict(path.parent), sort_keys=False, allow_unicode=True, width=120))


def _policy_entry(choice: PolicyChoice, move: Move) -> Any:
    policy = move_policy(choice.policy, move)
    entry = {"policy": policy, "settings": dict(choice.settings), "name": choice.name}
    return policy if not (choice.settings or choice.name) else {key: value for key, value in entry.items() if value}
