"""A thin client of a Kubernetes API server: plain dicts over HTTP, from any thread.

Each thread has a connection of its own, which stays open. Objects are addressed by their path (`path_of`). A watch is a connection by
itself, as it stays open for minutes.
"""

from __future__ import annotations

import http.client
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from email.utils import parsedate_to_datetime
from typing import TypeAlias
from urllib.parse import urlencode

from gantline.core.errors import GantlineError, UnreachableError
from gantline.live.runners.kubernetes.access import ClusterAccess, Object

Asked: TypeAlias = str | int | None  # a part of a query; None: it is left out
MANAGER = "gantline"  # the owner of the fields that server-side apply sets
_SECONDS = 20.0  # for an answer
_WATCH_SECONDS = 300  # after which the server ends a watch, and it is resumed
_SILENCE = 90.0  # without a byte on a watch: servers send a bookmark about once a minute
_PAGE = 500  # objects in one answer to a list
_APPLY, _MERGE, _JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json"


class ApiError(GantlineError):
    """What the API server answers instead of what was asked for."""

    exit_code = 4

    def __init__(self, code: int, reason: str, what: str, where: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(what, where=where)


class AwayError(UnreachableError):
    """The API server does not answer, or is not ready: the same request may be made again."""


class ApiClient:
    """Requests to one API server."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access
        self.skew = 0.0  # seconds by which the server's clock is ahead of ours, by its last answer
        self.lists = self.writes = 0  # how often objects were listed and written, for those who count
        self._own = threading.local()

    # --- requests -------------------------------------------------------------------------------------------------------
    def get(self, path: str, **query: Asked) -> Object:
        return self._json("GET", path, query)

    def create(self, path: str, value: Object) -> Object:
        return self._json("POST", path, {}, value)

    def replace(self, path: str, value: Object) -> Object:
        """Put an object in the place of one of the same resource version."""
        return self._json("PUT", path, {}, value)

    def apply(self, path: str, value: Object) -> Object:
        """Server-side apply: from now on these fields are as given, and ours; the same again changes nothing."""
        return self._json("PATCH", path, {"fieldManager": MANAGER, "force": "true"}, value, _APPLY)

    def merge(self, path: str, value: Object) -> Object:
        return self._json("PATCH", path, {"fieldManager": MANAGER}, value, _MERGE)

    def delete(self, path: str, grace: int | None = None, uid: str = "") -> Object:
        """Delete an object; with `uid` only if it is that one, and no newer one of its name."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options |= {"gracePeriodSeconds": grace} if grace is not None else {}
        options |= {"preconditions": {"uid": uid}} if uid else {}
        return self._json("DELETE", path, {}, options)

    def pages(self, path: str, **query: Asked) -> Iterator[tuple[list[Object], str]]:
        """All objects of a kind, page by page, each with the resource version to watch from."""
        self.lists += 1
        more = ""
        while True:
            found = self._json("GET", path, {**query, "limit": _PAGE, "continue": more or None})
            yield found.get("items") or [], str(found["metadata"].get("resourceVersion", ""))
            more = str(found["metadata"].get("continue") or "")
            if not more:
                return

    def watch(self, path: str, version: str, **query: Asked) -> Iterator[Object]:
        """Changes from a resource version on, until the server ends the watch; a version that is too old is an `ApiError` 410."""
        asked = {**query, "watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": _WATCH_SECONDS}
        for line in self.lines(path, _SILENCE, **asked):
            event: Object = json.loads(line)
            if event.get("type") == "ERROR":
                raise _error(int(event["object"].get("code") or 500), event["object"], "GET", path)
            yield event

    def lines(self, path: str, silence: float | None = None, **query: Asked) -> Iterator[bytes]:
        """The lines of an answer as they come, on a connection of its own."""
        with closing(self._connect(silence)) as connection:
            try:
                answer = self._send(connection, "GET", path, query)
                if answer.status >= 400:
                    raise _error(answer.status, _parsed(answer.read()), "GET", path)
                while line := answer.readline():
                    yield line
            except (OSError, http.client.HTTPException) as error:
                raise AwayError(f"the API server's answer broke off: {error}", where=self.access.server) from None

    def read(self, path: str, **query: Asked) -> bytes:
        """The bytes of an answer."""
        return self._whole("GET", path, query)

    def close(self) -> None:
        """Close this thread's connection."""
        if (connection := getattr(self._own, "connection", None)) is not None:
            connection.close()
            self._own.connection = None

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _json(self, method: str, path: str, query: Mapping[str, Asked], value: Object | None = None, kind: str = _JSON) -> Object:
        if method != "GET":
            self.writes += 1
        found: Object = json.loads(self._whole(method, path, query, value, kind))
        return found

    def _whole(self, method: str, path: str, query: Mapping[str, Asked], value: Object | None = None, kind: str = _JSON) -> bytes:
        """The answer to one request; a connection that the server has closed meanwhile is opened again, once."""
        for last in (False, True):
            fresh = getattr(self._own, "connection", None) is None
            try:
                connection = self._own.connection if not fresh else self._connect(_SECONDS)
                self._own.connection = connection
                answer = self._send(connection, method, path, query, value, kind)
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                closed = isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError))
                if last or fresh or not closed:
                    raise AwayError(f"no API server answers: {_said(error)}", where=self.access.server) from None
                continue
            if answer.status >= 400:
                raise _error(answer.status, _parsed(body), method, path)
            return body
        raise AssertionError("the second try answers or raises")

    def _connect(self, seconds: float | None) -> http.client.HTTPConnection:
        access = self.access
        if access.trust is not None:
            return http.client.HTTPSConnection(access.host, access.port, timeout=seconds, context=access.trust)
        return http.client.HTTPConnection(access.host, access.port, timeout=seconds)

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, query: Mapping[str, Asked], value: Object | None = None,
        kind: str = _JSON,
    ) -> http.client.HTTPResponse:  # fmt: skip
        given = urlencode({name: one for name, one in query.items() if one is not None})
        headers = {"Accept": "*/*", "User-Agent": "gantline"} | ({"Content-Type": kind} if value is not None else {})
        if bearer := self.access.bearer():
            headers["Authorization"] = f"Bearer {bearer}"
        body = None if value is None else json.dumps(value)
        connection.request(method, self.access.path + path + (f"?{given}" if given else ""), body, headers)
        answer = connection.getresponse()
        if stamp := answer.headers.get("Date"):
            self.skew = parsedate_to_datetime(stamp).timestamp() - time.time()
        return answer


def _parsed(body: bytes) -> Object:
    try:
        found = json.loads(body)
    except ValueError:
        found = {"message": body.decode("utf-8", "replace").strip()}
    return found if isinstance(found, dict) else {}


def _error(code: int, status: Object, method: str, path: str) -> GantlineError:
    """Busy servers (429), those that begin or end (5xx) and what must be sent again are away; anything else is an answer."""
    message = str(status.get("message") or f"HTTP status {code}")
    if code == 429 or code >= 500:
        return AwayError(f"the API server cannot answer now: {message}", where=f"{method} {path}")
    return ApiError(code, str(status.get("reason") or ""), message, f"{method} {path}")


def _said(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


# Follows the objects of one kind: listed once, then watched. A watch that ends is resumed where it was; only one
# that has fallen too far behind (410 Gone) is listed again. A server that has just been started may deny what it
# will grant as soon as it has read its roles, so that a denial counts only if it lasts.

_SOON, _LATER = 0.1, 2.0  # seconds before a watch that broke off is resumed: at first, and at most
_GONE, _DENIED = 410, (401, 403)
_BELIEVED = 60.0  # seconds after which a denial is believed

See = Callable[[Object, bool], None]  # an object, and whether it was deleted


class Follower:
    """One kind of objects. `first` lists them in the caller's thread; `start` follows them in one of its own."""

    def __init__(self, client: ApiClient, path: str, see: See, relisted: Callable[[set[str], int], None], **query: str) -> None:
        self.client, self.path, self.see, self.query = client, path, see, query
        self.relisted = relisted  # called after a list with the uids of all objects and its version: older ones that are not in it are gone
        self.failure: BaseException | None = None
        self.is_away = False
        self.gone = 0  # how often it had fallen too far behind
        self._version = ""
        self._stop = threading.Event()

    def first(self) -> None:
        """List all objects."""
        seen: set[str] = set()
        for items, version in self.client.pages(self.path, **self.query):
            for one in items:
                seen.add(str(one["metadata"]["uid"]))
                self.see(one, False)
            self._version = version
        self.relisted(seen, int(self._version))

    def start(self) -> None:
        threading.Thread(target=self._follow, name=f"gantline-follow-{self.path.rpartition('/')[2]}", daemon=True).start()

    def stop(self) -> None:
        """End with the next event or bookmark; the thread does not keep a process from ending."""
        self._stop.set()

    def _follow(self) -> None:
        pause, denied = _SOON, math.inf  # since when it denies
        while not self._stop.is_set():
            try:
                if not self._version:
                    self.first()
                for event in self.client.watch(self.path, self._version, **self.query):
                    if self._stop.is_set():
                        return
                    self.is_away, pause, denied = False, _SOON, math.inf
                    self._version = str(event["object"]["metadata"]["resourceVersion"])
                    if event["type"] != "BOOKMARK":
                        self.see(event["object"], event["type"] == "DELETED")
                denied = math.inf
            except ApiError as error:
                if error.code == _GONE:
                    self._version = ""
                    self.gone += 1
                    continue
                denied = min(denied, time.monotonic())
                if error.code not in _DENIED or time.monotonic() >= denied + _BELIEVED:
                    self.failure = error
                    return
                self._stop.wait(_LATER)
            except AwayError:
                self.is_away, denied = True, math.inf
                self._stop.wait(pause)
                pause = min(2 * pause, _LATER)
            except BaseException as error:
                self.failure = error
                return
