"""Sessions of browsers: a code for one use, exchanged for a token that is valid for hours, but not beyond its parent token.

A session's token is signed with the home's secret and names its parent, so that nothing is stored, a restart of the service does not end
it, and the session follows its parent (revoked, expired, another role).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from gantline.live.job_tokens import JobTokens

PREFIX = "gls_"
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
        parent, _, rest = token.removeprefix(PREFIX).partition(".")
        expires = rest.partition(".")[0]
        if not token.startswith(PREFIX) or not expires.isdecimal() or len(expires) > 12:
            return None
        session = Session(parent, float(expires))
        return session if hmac.compare_digest(token.encode(), self._token(session).encode()) else None

    def _token(self, session: Session) -> str:
        text = f"{session.parent}.{session.expires:.0f}"
        return f"{PREFIX}{text}.{self._secret.signature(f'session {text}')}"


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
