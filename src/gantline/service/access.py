"""Tokens: made once, shown once, kept as a hash. They carry 256 random bits, so that a plain SHA-256 is as good as a slow one."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import time
from collections.abc import Callable

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.runtime.job_tokens import JobTokens
from gantline.runtime.store import SqlStore, TokenRow
from gantline.service.roles import NAMES, Caller, Role

PREFIX = "gl_"
_USER = re.compile(r"^[\w][\w.@\-]{0,63}$")


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def check_user(user: str) -> None:
    """Refuse what cannot be the name of a user."""
    if not _USER.match(user):
        raise UsageError(f"{user[:40]!r} is not the name of a user", where="user", fix="use letters, digits and . _ @ -")


class Access:
    """Who a token belongs to."""

    def __init__(self, store: SqlStore, jobs: JobTokens, wall: Callable[[], float] = time.time) -> None:
        self._store, self.jobs, self._wall = store, jobs, wall

    def caller(self, token: str) -> Caller | None:
        """Who presents this token; None: nobody we know, any more or at all."""
        if len(token) > 512:
            return None
        if (job := self.jobs.job_of(token)) is not None:
            return Caller("", Role.JOB, job=job)
        found = self._store.token(digest(token))
        if found is None or found.revoked is not None or (found.expires is not None and found.expires <= self._wall()):
            return None
        return Caller(found.user, Role(found.role), token=found.id)

    def why_not(self, token: str) -> tuple[str, str]:
        """Why a token opens nothing, and what to do; the holder of one that was good once is told what became of it."""
        found = self._store.token(digest(token)) if token and len(token) <= 512 else None
        if found is None:
            return "no token, or one that is not known here", "set GANTLINE_TOKEN or --home"
        return f"token {found.id} {'was revoked' if found.revoked is not None else 'has expired'}", "ask an admin for another token"

    def create(self, user: str, role: str, lifetime: float = math.inf, token: str = "") -> tuple[TokenRow, str]:
        """A new token, and the only sight of it. `token`: one that is there already, in the home's file."""
        if role not in NAMES:
            raise UsageError(f"no role '{role}'", where="role", fix=near(role, NAMES))
        check_user(user)
        token = token or PREFIX + secrets.token_urlsafe(32)
        now = self._wall()
        row = TokenRow(secrets.token_hex(6), digest(token), user, role, now, now + lifetime if math.isfinite(lifetime) else None)
        with self._store.transaction() as write:
            write.token(row)
        return row, token

    def revoke(self, id: str) -> None:
        """The token is good for nothing from now on."""
        with self._store.transaction() as write:
            if not write.revoke(id, self._wall()):
                raise NotFoundError(f"no token '{id[:40]}'", where="token", fix="see gantline token list")

    def listed(self) -> list[TokenRow]:
        return self._store.tokens()
