"""A real Chromium for tests, steered over its debugging pipe: no driver, no port, no further package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0


def find_chromium() -> str:
    """The browser's program; its absence is an error here, because these tests are asked for by name."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("no Chromium on this machine; on Debian: apt-get install chromium")


class Chromium:
    """One browser with one page. It collects errors, console messages and every address that the page asks for."""

    def __init__(self, home: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The browser reads commands on descriptor 3 and answers on 4.
        self._process = subprocess.Popen(
            [
                *("bash", "-c", f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"', "bash"),
                *(find_chromium(), *FLAGS, f"--user-data-dir={home}", "about:blank"),
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session = b"", 0, ""
        self.errors: list[str] = []
        self.addresses: list[str] = []
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        target = pages[0]["targetId"] if pages else self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer, noting what happens meanwhile."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self._note(answer)

    def open(self, address: str) -> None:
        """Leave the page that is open, load another, and wait until it says that it is ready."""
        self.call("Page.navigate", url="about:blank")  # until then the old page may still ask, and complain
        self.errors.clear()
        self.addresses.clear()
        self.call("Page.navigate", url=address)
        self.wait_for("document.documentElement?.dataset.ready === 'yes'")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "script failed"))
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {condition}; errors: {self.errors}")
            time.sleep(0.05)

    def become(self, width: int, height: int = 900, *, dark: bool = False, phone: bool = False) -> None:
        """Take the size of a screen and its preference for light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """The whole page as a PNG, or what is seen without scrolling."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self, path: Path) -> None:
        """The page as it comes out on paper (PDF)."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))

    def close(self) -> None:
        """End this browser."""
        self._session = ""
        try:
            self.call("Browser.close")
        except (OSError, EOFError):
            self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        os.close(self._read)
        os.close(self._write)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError("Chromium does not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise EOFError("Chromium has ended")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        method, details = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            self.errors.append(thrown.get("exception", {}).get("description") or f"{thrown['text']}: {thrown.get('exception')}")
        elif method == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.errors.append(details["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in details["args"]))
        elif method == "Network.requestWillBeSent":
            self.addresses.append(details["request"]["url"])
