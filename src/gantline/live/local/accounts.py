"""The account of a job's processes: where root serves, each user's jobs run as an account of this machine, which keeps users apart.

A user of the service is no account by itself: an operator says which one it is (``gantline user add``), or it is the one of the same name.
The jobs of the service's owner run as the service does; jobs of others never run as root.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.accounts import Accounts, NoAccountError

_REACHED = 0o711  # a folder that others may pass through, and not look into


@dataclass(frozen=True, slots=True)
class Account:
    """An account of this machine."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @staticmethod
    def find(name: str) -> Account:
        """The account of that name; never root's."""
        try:
            found = pwd.getpwnam(name)
        except (KeyError, ValueError):
            raise NotFoundError(f"this machine has no account '{name[:64]}'", where="account", fix="see getent passwd") from None
        if found.pw_uid == 0:
            raise RefusedError(f"'{name[:64]}' is root, and jobs of users do not run as root", where="account", fix="name another account")
        groups = tuple(os.getgrouplist(name, found.pw_gid))
        return Account(name, found.pw_uid, found.pw_gid, groups, found.pw_dir, found.pw_shell)

    def to_json(self) -> dict[str, Any]:
        """What a keeper needs of it."""
        return {"name": self.name, "uid": self.uid, "gid": self.gid, "groups": list(self.groups)}

    @property
    def variables(self) -> dict[str, str]:
        """The variables that a login would set."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}

    def give(self, home: Path, folder: Path, *own: Path) -> None:
        """These folders are the account's alone; it can reach them, and sees nothing else of the home.

        The folder of the incarnation stays the service's: an account that could write there could put links where the keeper writes.
        """
        for one in (home, home / "jobs", folder.parent, folder):
            one.mkdir(mode=_REACHED, exist_ok=True)
            one.chmod(_REACHED)
        for one in own:
            one.mkdir(mode=0o700, exist_ok=True)
            os.chown(one, self.uid, self.gid, follow_symlinks=False)


@dataclass(frozen=True)
class LocalAccounts(Accounts):
    """Which account the jobs of a user run as."""

    apart: bool = False  # whether they do at all; else all run as the service does
    owner: str = ""
    named: Callable[[], Mapping[str, str]] = dict  # accounts by user, as an operator has set them

    def find(self, name: str) -> Account:
        """The account of that name; never root's."""
        return Account.find(name)

    def of(self, user: str) -> Account | None:
        """The account of a user; None: the service's own."""
        if not self.apart or user == self.owner:
            return None
        try:
            return Account.find(self.named().get(user, user))
        except (NotFoundError, RefusedError) as error:
            raise NoAccountError(
                f"user '{user[:64]}' has no account to run jobs as: {error.what}",
                where="account", fix=f"gantline user add {user[:64]} --account NAME, or gantline up --run-as service",
            ) from None  # fmt: skip
