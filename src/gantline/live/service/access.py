"""Who may do what: four roles, each with all rights of the one before it, and the role of jobs; what a role does not allow is refused."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.live.store import SqlStore, TokenRow


class Role(StrEnum):
    """What a token allows."""

    VIEWER = "viewer"  # sees the user's own jobs, and the machine
    SUBMITTER = "submitter"  # submits jobs, and controls the user's own
    OPERATOR = "operator"  # sees and controls all jobs, nodes, queues, and the policy
    ADMIN = "admin"  # tokens, and the end of the service
    JOB = "job"  # a job that reports its own progress, and nothing else
    ANYONE = "anyone"  # no token at all: only to log in


_RANKS = {Role.VIEWER: 1, Role.SUBMITTER: 2, Role.OPERATOR: 3, Role.ADMIN: 4}
NAMES = tuple(role.value for role in _RANKS)


class NoRightError(RefusedError):
    """The token is valid, but its role does not allow this."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The user or job that makes a request."""

    user: str
    role: Role
    job: str = ""  # the job that owns the token
    token: str = ""  # the id of the token, never the token
    expires: float | None = None  # seconds since 1970
    is_session: bool = False  # a browser's, which began with that token

    def may(self, role: Role) -> bool:
        """Whether it may do what needs that role."""
        if role is Role.ANYONE:
            return True
        if Role.JOB in (self.role, role):
            return self.role is role
        return _RANKS[self.role] >= _RANKS[role]

    def check(self, role: Role) -> None:
        """Refuse a request that needs that role, unless this caller's role allows it."""
        if not self.may(role):
            raise NoRightError(f"needs the role {role}; this token is for {self.role}", where="token", fix="ask an admin for a token")

    def sees(self, user: str) -> bool:
        """Whether it may see and control jobs of that user."""
        return self.may(Role.OPERATOR) or (self.role is not Role.JOB and user == self.user)


# The token of a job: made from the home's secret and the job's id, so that nothing has to be stored and a restart
# gives the same one.

JOB_PREFIX = "glj_"
_LENGTH = 32  # bytes of a secret


class JobTokens:
    """Makes and checks the tokens with which jobs report their own progress, and nothing else."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @staticmethod
    def at(path: Path) -> JobTokens:
        """From the secret in a file for its owner alone, which is made if it is not there."""
        if not path.exists():
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(secrets.token_bytes(_LENGTH))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)  # whole or not at all
            draft.unlink()
        secret = path.read_bytes()
        if len(secret) < _LENGTH:
            raise RefusedError(
                f"has {len(secret)} bytes instead of {_LENGTH}: anyone with such a secret could report for any job",
                where=str(path), fix="delete it; running jobs then cannot report, and go on",
            )  # fmt: skip
        return JobTokens(secret)

    def signature(self, text: str) -> str:
        """The signature of a text with the secret."""
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()

    def token(self, job: str) -> str:
        """The token of a job."""
        return f"{JOB_PREFIX}{job}.{self.signature(job)}"

    def job_of(self, token: str) -> str | None:
        """The job that a token belongs to; None: no job's."""
        job, sign, _ = token.removeprefix(JOB_PREFIX).rpartition(".")
        known = bool(sign) and token.startswith(JOB_PREFIX) and hmac.compare_digest(token.encode(), self.token(job).encode())
        return job if known else None


# Sessions of browsers: a code for one use, exchanged for a token that is valid for hours, but not beyond its parent
# token.
#
# A session's token is signed with the home's secret and names its parent, so that nothing is stored, a restart of
# the service does not end it, and the session follows its parent (revoked, expired, another role).

SESSION_PREFIX = "gls_"
LIFETIME = 12 * 3600.0
CODE_LIFETIME = 300.0
_MOST_CODES = 1000


@dataclass(frozen=True)
class Session:
    """What a session's token holds: the token it was made from, and when it expires."""

    parent: str  # the id of a token
    expires: float


class Sessions:
    """Makes codes and tokens, and reads tokens."""

    def __init__(self, secret: JobTokens, wall: Callable[[], float] = time.time) -> None:
        self._secret, self._wall = secret, wall
        self._lock = threading.Lock()
        self._codes: dict[str, tuple[str, float]] = {}  # by hash: the parent, and when it expires

    def code(self, parent: str) -> tuple[str, float]:
        """A new code, and when it expires."""
        code, now = secrets.token_urlsafe(32), self._wall()
        with self._lock:
            known = {hash: one for hash, one in self._codes.items() if one[1] > now}
            self._codes = dict([*known.items()][-_MOST_CODES + 1 :])
            self._codes[_hash(code)] = (parent, now + CODE_LIFETIME)
        return code, now + CODE_LIFETIME

    def trade(self, code: str) -> tuple[str, Session] | None:
        """The token for a code, once; None: the code is unknown, used or expired."""
        with self._lock:
            found = self._codes.pop(_hash(code), None)
        if found is None or found[1] <= self._wall():
            return None
        session = Session(found[0], float(round(self._wall() + LIFETIME)))
        return self._token(session), session

    def read(self, token: str) -> Session | None:
        """What a token holds; None: it is no session's. The caller checks whether it has expired."""
        parent, _, rest = token.removeprefix(SESSION_PREFIX).partition(".")
        expires = rest.partition(".")[0]
        if not token.startswith(SESSION_PREFIX) or not expires.isdecimal() or len(expires) > 12:
            return None
        session = Session(parent, float(expires))
        return session if hmac.compare_digest(token.encode(), self._token(session).encode()) else None

    def _token(self, session: Session) -> str:
        text = f"{session.parent}.{session.expires:.0f}"
        return f"{SESSION_PREFIX}{text}.{self._secret.signature(f'session {text}')}"


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


# Tokens: shown once, stored as a hash. They carry 256 random bits, so a plain SHA-256 is as safe as a slow hash.

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
