"""The folder of a service, and how clients find it: ``--home``, ``GANTLINE_HOME``, ``~/.gantline``, or ``GANTLINE_URL``."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, UsageError

_ROOM = 512 << 10


def owner() -> str:
    """The user whose service it is: the account of this process, whatever its environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid{os.getuid()}"


@dataclass(frozen=True)
class Home:
    """The folder that holds everything of one service."""

    path: Path

    @staticmethod
    def find(given: Path | str | None = None) -> Home:
        """The folder that was given, else that of the environment, else ``~/.gantline``."""
        text = str(given) if given else os.environ.get("GANTLINE_HOME", "")
        return Home((Path(text) if text else Path.home() / ".gantline").expanduser().absolute())

    @property
    def store(self) -> Path:
        return self.path / "gantline.sqlite"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def jobs(self) -> Path:
        return self.path / "jobs"

    @property
    def archive(self) -> Path:
        return self.path / "archive"

    @property
    def log(self) -> Path:
        return self.path / "service.log"

    @property
    def secret(self) -> Path:
        return self.path / "secret"

    @property
    def token(self) -> Path:
        return self.path / "token"

    @property
    def address(self) -> Path:
        return self.path / "address.json"

    def make(self) -> None:
        """Create it for its owner alone; refuse one that others may write to, and close one that they may read."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UsageError("is not a folder", where=str(self.path), fix="choose another --home") from None
        except OSError as error:
            raise RefusedError(
                f"cannot be made: {(error.strerror or str(error)).lower()}", where=str(self.path), fix="choose another --home"
            ) from None
        status = self.path.stat()
        if status.st_uid != os.getuid():
            raise RefusedError("belongs to another user", where=str(self.path), fix="choose another --home")
        if status.st_mode & 0o022:
            raise RefusedError("others may write to it", where=str(self.path), fix=f"chmod go-w {self.path}")
        if status.st_mode & 0o044:  # the environments of jobs, with their secrets, are in it
            self.path.chmod(0o700)

    def check_entered(self) -> None:
        """Refuse a home that the accounts of users cannot get to: each of their jobs would fail."""
        closed = next((one for one in reversed(self.path.resolve().parents) if not one.stat().st_mode & 0o001), None)
        if closed is not None:
            raise RefusedError(
                f"jobs run as the accounts of their users, which may not enter {closed}",
                where=str(self.path), fix=f"choose another --home, such as /srv/gantline; or chmod o+x {closed}; or --run-as service",
            )  # fmt: skip

    def check_room(self) -> None:
        """Refuse to begin where nothing can be written: a full disk, a quota, a file system that is read only."""
        probe = self.path / f".room.{os.getpid()}"
        try:
            with open(probe, "wb") as out:
                out.write(bytes(_ROOM))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise RefusedError(
                f"cannot be written: {(error.strerror or str(error)).lower()}",
                where=str(self.path), fix=f"make room: a start needs {_ROOM >> 10} KiB, and jobs need more for their output",
            ) from None  # fmt: skip
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)

    def write_private(self, file: Path, text: str) -> None:
        """A file for its owner alone, whole or not at all."""
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)

    def announced(self) -> dict[str, Any] | None:
        """The address file, which a running service keeps and a killed one leaves behind; None: there is none."""
        try:
            found = json.loads(self.address.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "url" in found else None


@dataclass(frozen=True)
class Address:
    """Where a service is, and the token for it."""

    url: str
    token: str
    verify: str | bool = True  # its certificate, if no public authority signed it


def find_address(home: Path | str | None = None) -> Address:
    """The service to use; a folder that is named takes precedence over the environment."""
    url = os.environ.get("GANTLINE_URL", "")
    if home is None and url:
        token = os.environ.get("GANTLINE_TOKEN", "")
        if not token:
            raise UsageError("GANTLINE_TOKEN is not set", where="GANTLINE_URL", fix="set both, or use --home")
        return Address(url.rstrip("/"), token, os.environ.get("GANTLINE_CA") or True)
    place = Home.find(home)
    announced = place.announced()
    if announced is None:
        raise UnreachableError("no service runs here", where=str(place.path), fix="start one: gantline up --detach")
    try:
        token = os.environ.get("GANTLINE_TOKEN") or place.token.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise RefusedError(
            f"its token cannot be read: {(error.strerror or '').lower()}", where=str(place.token), fix="set GANTLINE_TOKEN"
        ) from None
    return Address(str(announced["url"]), token, announced.get("certificate") or True)


# The Unix socket of a service: this machine's users reach it there, whatever others do to its port.
#
# Its name is that of the port, in the kernel's own list of names, so that accounts that may not enter the home find
# it, too. The kernel says whose process is at the other end: the service counts connections by account, and a client
# sends its token to nobody but root and its own account.

HERE = ("127.0.0.1", "localhost", "::1")
_CREDENTIALS = struct.Struct("3i")  # process, user, group
_SECONDS = 1.0  # for a connection on this machine


def listen_on_unix_socket(port: int) -> socket.socket | None:
    """A socket beside the port; None: this system has none, or the name is taken."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(_name(port))
        found.listen(256)
    except OSError:
        found.close()
        return None
    return found


def socket_of(url: str) -> str | None:
    """The name of the socket of the service at this address, where it is on this machine and may be trusted with a token."""
    try:
        parts = urlsplit(url)
        if parts.hostname not in HERE or parts.port is None:
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_SECONDS)
            probe.connect(_name(parts.port))
            return _name(parts.port) if user_of(probe) in (0, os.getuid()) else None
    except (OSError, ValueError, AttributeError):
        return None


def user_of(connection: socket.socket) -> int:
    """The number of the account at the other end of a Unix socket."""
    return int(_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1])


def _name(port: int) -> str:
    return f"\0gantline-{port}"


# How to start a service; separate from the service, so that starting one in the background does not import it.

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
