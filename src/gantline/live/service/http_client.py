"""One connection to a service: requests with a token, repeated where that is safe, and refusals as errors."""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from gantline.core.errors import UnreachableError
from gantline.live.service.answers import error_of
from gantline.live.service.home import Address, find_address, socket_of

_TRIES = 4  # of a request that may be repeated


class HttpClient:
    """The connection of a `Client`."""

    def __init__(self, url: str | None = None, token: str | None = None, *, home: Path | str | None = None, timeout: float = 60.0) -> None:
        if url is not None:
            address = Address(url.rstrip("/"), token or os.environ.get("GANTLINE_TOKEN", ""), os.environ.get("GANTLINE_CA") or True)
        else:
            address = find_address(home)
        self.url = address.url
        headers = {"Authorization": f"Bearer {token or address.token}"}
        near = httpx.HTTPTransport(verify=_trust(address), trust_env=False, uds=socket_of(address.url))
        self._http = httpx.Client(base_url=address.url, headers=headers, timeout=timeout, transport=near, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """Any other route that only reads."""
        return self._get(path, **params)

    def put(self, path: str, body: Any) -> dict[str, Any]:
        """Any other route that sets something."""
        return self._send("PUT", path, body)

    def delete(self, path: str) -> dict[str, Any]:
        """Any other route that drops something."""
        return self._send("DELETE", path)

    def _get(self, path: str, **params: Any) -> dict[str, Any]:
        given = {key: value for key, value in params.items() if value not in (None, "", [])}
        found: dict[str, Any] = self._request("GET", path, params=given, tries=_TRIES).json()
        return found

    def _send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        tries = _TRIES if headers and "Idempotency-Key" in headers else 1
        found: dict[str, Any] = self._request(method, path, json=body, headers=headers, params=params, tries=tries).json()
        return found

    def _stream(self, path: str, **params: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and bodies of server-sent events."""
        name = ""
        try:
            with self._http.stream("GET", path, params=params) as answer:
                if not answer.is_success:
                    answer.read()
                    raise error_of(answer.status_code, _json_of(answer))
                for line in answer.iter_lines():
                    if line.startswith("event: "):
                        name = line.removeprefix("event: ")
                    elif line.startswith("data: "):
                        yield name, json.loads(line.removeprefix("data: "))
        except httpx.TransportError as error:
            raise UnreachableError(f"the stream broke: {_short(error)}", where=self.url, fix="see gantline status") from None

    def _request(self, method: str, path: str, *, tries: int = 1, **more: Any) -> httpx.Response:
        for left in reversed(range(tries)):
            try:
                answer = self._http.request(method, path, **more)
                break
            except (httpx.TransportError, httpx.InvalidURL) as error:
                if left == 0 or (isinstance(error, httpx.ConnectError) and method == "GET"):
                    raise UnreachableError(f"does not answer: {_short(error)}", where=self.url, fix="see gantline status") from None
            time.sleep(0.1 * 2 ** (tries - left))
        if answer.is_success:
            return answer
        raise error_of(answer.status_code, _json_of(answer))


def _json_of(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _trust(address: Address) -> ssl.SSLContext | bool:
    """The trusted certificates: the public ones, or the service's own. Plain HTTP loads none: that would take longer than a request."""
    if not address.url.startswith("https"):
        return False
    return ssl.create_default_context(cafile=address.verify) if isinstance(address.verify, str) else True


def path_part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _short(error: Exception) -> str:
    return " ".join(str(error).split()).lower() or type(error).__name__
