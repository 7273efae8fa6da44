"""What all that make or end steps need: the environment of `srun`, and how a step ends of which nothing else of ours is left.

Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import os
import subprocess
import time

_LOOK = 0.2  # seconds between looks whether it is gone
_PATIENCE = 10.0  # seconds for one command


_INHERITED = ("SLURM", "SALLOC", "SBATCH", "PMI")  # variables with which an allocation's shell tells srun what to do


def srun_environment() -> dict[str, str]:
    """The environment of this process, less what would change the steps that are asked for."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_INHERITED) or name == "SLURM_CONF"}


def end_step(step: str, seconds: float) -> bool:
    """End a step, and wait for that; False: it may still be there, because slurmctld does not answer, or its nodes do not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _answer("scancel", step)
        if _answer("squeue", "--noheader", f"--steps={step}", "--format=%i") == "":
            return True
        time.sleep(_LOOK)
    return False


def _answer(*command: str) -> str | None:
    """What a command prints; None: it has failed."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return None if done.returncode else done.stdout.strip()
