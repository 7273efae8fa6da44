"""Tokens: shown once, stored as a hash. They carry 256 random bits, so a plain SHA-256 is as safe as a slow hash."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import time
from collections.abc import Callable

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.live.job_tokens import JobTokens
from gantline.live.service.roles import NAMES, Caller, Role
from gantline.live.service.sessions import Sessions
from gantline.live.store import SqlStore, TokenRow

PREFIX = "gl_"
_UNKNOWN = "no token, or one that is not known here", "set GANTLINE_TOKEN or --home"
_USER = re.compile(r"^[\w][\w.@\-]{0,63}$")


def digest(token: str) -> str:
    """The hash under which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def check_user(user: str) -> None:
    """Refuse what cannot be the name of a user."""
    if not _USER.match(user):
        raise UsageError(f"{user[:40]!r} is not the name of a user", where="user", fix="use letters, digits and . _ @ -")


class Access:
    """Finds the owner of a token."""

    def __init__(self, store: SqlStore, jobs: JobTokens, wall: Callable[[], float] = time.time) -> None:
        self._store, self.jobs, self._wall = store, jobs, wall
        self.sessions = Sessions(jobs, wall)

    def caller(self, token: str) -> Caller | None:
        """The owner of this token; None: it is unknown, revoked or expired."""
        if len(token) > 512:
            return None
        if (job := self.jobs.job_of(token)) is not None:
            return Caller("", Role.JOB, job=job)
        session = self.sessions.read(token)
        found = self._store.token(digest(token)) if session is None else self._store.token_by_id(session.parent)
        ends = [one.expires for one in (found, session) if one is not None and one.expires is not None]
        if found is None or found.revoked is not None or min(ends, default=math.inf) <= self._wall():
            return None
        return Caller(found.user, Role(found.role), token=found.id, expires=min(ends, default=None), is_session=session is not None)

    def why_not(self, token: str) -> tuple[str, str]:
        """Why a token is refused, and what to do; for one that was valid once, whether it was revoked or has expired."""
        if not token or len(token) > 512:
            return _UNKNOWN
        session = self.sessions.read(token)
        found = self._store.token(digest(token)) if session is None else self._store.token_by_id(session.parent)
        if found is None:
            return _UNKNOWN
        ended = found.revoked is not None or (found.expires is not None and found.expires <= self._wall())
        if session is not None and not ended:
            return "the session has expired", "log in again: gantline dashboard"
        return f"token {found.id} {'was revoked' if found.revoked is not None else 'has expired'}", "ask an admin for another token"

    def create(self, user: str, role: str, lifetime: float = math.inf, token: str = "") -> tuple[TokenRow, str]:
        """A new token, which is shown only here. `token`: one that exists already, in the home's file."""
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
        """The token is invalid from now on."""
        with self._store.transaction() as write:
            if not write.revoke(id, self._wall()):
                raise NotFoundError(f"no token '{id[:40]}'", where="token", fix="see gantline token list")

    def change_role(self, id: str, role: str) -> None:
        """Give the token, and the sessions that began with it, another role."""
        if role not in NAMES:
            raise UsageError(f"no role '{role[:40]}'", where="role", fix=near(role[:40], NAMES))
        with self._store.transaction() as write:
            if not write.change_role(id, role):
                raise NotFoundError(f"no token '{id[:40]}'", where="token", fix="see gantline token list")

    def listed(self) -> list[TokenRow]:
        return self._store.tokens()
