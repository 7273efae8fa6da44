"""How to start a service; separate from the service, so that starting one in the background does not import it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.live.service.home import Home

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Options:
    """How to serve."""

    home: Home
    devices: str | None = None
    policy: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int | None = None  # None: as at the previous start, else any
    store: str = ""  # a URL; empty: the file in the home
    names: tuple[str, ...] = ()  # other names by which it may be called
    certificate: Path | None = None
    key: Path | None = None
    run_as: str = (
        ""  # "users": jobs run as their users' accounts; "service": as the service; empty: as before, else apart, where root serves
    )
    anew: Mapping[str, Any] = field(default_factory=dict)  # fields of `Setup` that are given; others are as at the previous start
    keep: Mapping[str, Any] = field(default_factory=dict)  # fields of `Keep` that are given, as JSON; others are as at the previous start
    executor: str | None = None  # what carries orders out; None: as at the previous start, else this machine's processes
    results: Path | None = None  # finished simulations to show; None: as at the previous start
    preload: tuple[str, ...] = ()  # modules that a template imports for jobs
    runner: Mapping[str, str] = field(default_factory=dict)  # options of the executor's own; others are as at the previous start
    wall: Callable[[], float] = time.time  # the wall clock, which may jump

    def apart(self, before: str = "") -> bool:
        """Whether jobs run as their users, which only root can do: as given now, else as `before`, at the previous start."""
        return os.getuid() == 0 and (self.run_as or os.environ.get("GANTLINE_RUN_AS") or before or "users") == "users"

    @property
    def secured(self) -> bool:
        return self.certificate is not None and self.key is not None

    def check(self) -> None:
        """Refuse options that would open the service to everyone, and those that contradict one another."""
        if self.run_as == "users" and os.getuid() != 0:
            raise RefusedError(
                "only root can run jobs as other accounts", where="--run-as", fix="start the service as root, or leave it out"
            )
        if (self.certificate is None) != (self.key is None):
            raise UsageError(
                "a certificate needs its key, and a key its certificate", where="--tls-cert", fix="give --tls-cert and --tls-key"
            )
        if self.results is not None and not self.results.is_dir():
            raise NotFoundError("no such folder", where="--results", fix="name a folder of finished simulations")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise NotFoundError("no such file", where=str(file), fix="check --tls-cert and --tls-key")
        if self.host not in _LOOPBACK and not self.secured:
            raise RefusedError(
                f"'{self.host}' can be reached from other machines, and nothing would be encrypted",
                where="--host", fix="give --tls-cert and --tls-key, or leave --host out",
            )  # fmt: skip
