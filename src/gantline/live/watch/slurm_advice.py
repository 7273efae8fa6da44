"""What an operator would type to have Slurm serve its queue in the order of another policy.

The order is the policy's ranking, or that in which it starts jobs when the present is rolled forward with the estimates as the truth.
Where the present order differs, jobs get explicit priorities; jobs that the policy would stop now are requeued where that is asked for.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gantline.core.errors import GantlineError, UsageError
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.questions.forecast import Setup
from gantline.live.watch.watched import ClusterLook, Document
from gantline.models.uncertainty import Uncertainty
from gantline.simulator.roll_forward import carry_out
from gantline.traces.files.policies import load_policy

_HIGHEST = 4_000_000_000  # of Slurm's 32 bits
_SECONDS = 60.0


@dataclass(frozen=True)
class SlurmAdvice:
    """Commands in the order in which they are to be typed, with the reason of each."""

    policy: str
    commands: tuple[tuple[str, ...], ...]
    why: tuple[str, ...]
    left: int  # commands beyond the bound

    def as_json(self) -> Document:
        rows = [{"command": " ".join(command), "why": why} for command, why in zip(self.commands, self.why)]
        return {"policy": self.policy, "commands": rows, "left": self.left}

    def lines(self) -> list[str]:
        if not self.commands:
            return [f"Slurm's order is that of {self.policy}: nothing to change"]
        found = [f"{' '.join(command)}  # {why}" for command, why in zip(self.commands, self.why)]
        found += [f"# {self.left} more changes are beyond the bound (--at-most)"] if self.left else []
        return [*found, "# to give a job back to Slurm's own priorities: scontrol hold ID; scontrol release ID"]


def advise_order(look: ClusterLook, policy: str, settings: Document, at_most: int = 20, requeue: bool = False) -> SlurmAdvice:
    """The commands that make Slurm's order that of the policy."""
    snapshot, other = decode_snapshot(look.snapshot), load_policy(policy, settings)
    waiting = set(look.queue)
    now, then = list(look.queue), [job for job in _ranked(snapshot, other) if job in waiting]
    commands: list[tuple[str, ...]] = []
    why: list[str] = []
    if requeue:
        for outcome in carry_out(snapshot, other.decide(snapshot)):
            if outcome.act == "is stopped":
                commands.append(("scontrol", "requeue", outcome.job))
                why.append(f"{policy} would stop it now")
    last = max((place for place, (one, another) in enumerate(zip(now, then)) if one != another), default=-1)
    for place, job in enumerate(then[: last + 1]):
        commands.append(("scontrol", "update", f"JobId={job}", f"Priority={_HIGHEST - place}"))
        why.append(f"place {place + 1} by {policy}, {now.index(job) + 1} now")
    return SlurmAdvice(policy, tuple(commands[:at_most]), tuple(why[:at_most]), max(len(commands) - at_most, 0))


def _ranked(snapshot: Snapshot, policy: Policy) -> list[str]:
    """All jobs in the order of a policy: by its ranking, else by when it would start them; ties stay in order of arrival."""
    plan, ids = policy.decide(snapshot), snapshot.jobs.ids
    if plan.ranking is not None:
        return [ids[place] for place in np.argsort(plan.ranking.key, kind="stable").tolist()]
    rolled = Setup(uncertainty=Uncertainty(0.0), samples=1).futures(snapshot, policy)
    return [ids[place] for place in np.argsort(rolled.start[0], kind="stable").tolist()]


def apply(advice: SlurmAdvice, said: Callable[[str], None]) -> int:
    """Type them; the first that Slurm refuses ends it, with what was done before. How many were carried out."""
    for number, command in enumerate(advice.commands):
        try:
            found = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GantlineError(f"{command[0]}: {error}", where="watch slurm", fix=f"{number} changes were made before") from error
        if found.returncode != 0:
            what = f"{' '.join(command)}: {found.stderr.strip() or f'exit code {found.returncode}'}"
            raise UsageError(
                what, where="watch slurm --apply", fix=f"{number} changes were made before; only operators may change priorities"
            )
        said(" ".join(command))
    return len(advice.commands)
