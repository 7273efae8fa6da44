"""Which account the jobs of a user run as, where a runner keeps users apart."""

from __future__ import annotations

from typing import ClassVar, Protocol

from gantline.core.errors import RefusedError


class NoAccountError(RefusedError):
    """A user has no account to run jobs as."""


class NamedAccount(Protocol):
    """An account that jobs run as."""

    @property
    def name(self) -> str: ...


class Accounts(Protocol):
    """Which account the jobs of a user run as."""

    @property
    def apart(self) -> bool:
        """Whether they run as accounts of their users at all; else all run as the service does."""
        ...

    def of(self, user: str) -> NamedAccount | None:
        """The account of a user, refused where there is none; None: the service's own."""
        ...

    def find(self, name: str) -> NamedAccount:
        """The account of that name, where jobs may run as it."""
        ...

    def lacks(self, user: str) -> bool:
        """Whether the user's jobs cannot run because there is no account for them."""
        try:
            self.of(user)
        except NoAccountError:
            return True
        return False


class AsTheService(Accounts):
    """All jobs run as the service does."""

    apart: ClassVar[bool] = False

    def of(self, user: str) -> None:
        return None

    def find(self, name: str) -> NamedAccount:
        raise RefusedError("the executor of this service runs no jobs as accounts of users", where="account", fix="leave it out")
