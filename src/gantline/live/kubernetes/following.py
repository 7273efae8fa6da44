"""Follows the objects of one kind: listed once, then watched. A watch that ends is resumed where it was; only one that has fallen too far
behind (410 Gone) is listed again. A server that has just been started may deny what it will grant as soon as it has read its roles, so
that a denial counts only if it lasts."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from gantline.live.kubernetes.client import ApiClient, ApiError, AwayError
from gantline.live.kubernetes.objects import Object

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
