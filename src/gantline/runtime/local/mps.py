"""NVIDIA's multi-process service, where it is there: jobs that share a GPU run side by side, each with its part of the cores.

Without it the driver lets them take turns of milliseconds, which needs nothing from us. The daemon is started when the first share is
granted, and ended when the jobs have been drained.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_CONTROL = "nvidia-cuda-mps-control"


class Mps:
    """One daemon for all GPUs of this machine; its pipe lies in the home."""

    def __init__(self, home: Path) -> None:
        self.pipe = home / "mps"

    @property
    def present(self) -> bool:
        return shutil.which(_CONTROL) is not None

    def share(self, fraction: float) -> dict[str, str]:
        """The variables that give a process that part of its GPUs; none where there is no such service."""
        if not self.present or not self._started():
            return {}
        return {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipe), "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{max(1, round(100 * fraction))}"}

    def quit(self) -> None:
        """End the daemon, if it runs."""
        if self.present and (self.pipe / "started").exists():
            subprocess.run([_CONTROL], input=b"quit\n", env=self._env(), check=False, timeout=30, capture_output=True)
            (self.pipe / "started").unlink(missing_ok=True)

    def _started(self) -> bool:
        """Starting it twice is harmless: the second one finds the pipe taken and ends."""
        if not (self.pipe / "started").exists():
            self.pipe.mkdir(parents=True, exist_ok=True)
            try:
                subprocess.run([_CONTROL, "-d"], env=self._env(), check=True, timeout=30, capture_output=True)
            except (OSError, subprocess.SubprocessError):
                return False
            (self.pipe / "started").touch()
        return True

    def _env(self) -> dict[str, str]:
        return {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe), "CUDA_MPS_LOG_DIRECTORY": str(self.pipe)}
