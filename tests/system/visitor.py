"""Somebody at the dashboard: opens a log-in link, reads what is there, presses what can be pressed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.system.chromium import Chromium

from gantline.live.service.client import Client

AXE = Path(__file__).parent / "axe" / "axe.min.js"
EXPECTED = "Failed to load resource"  # what the browser says of a refusal or a service that is away; the page says it in words


def link(url: str, token: str) -> str:
    """A log-in link, as `gantline dashboard` asks for one."""
    with Client(url, token) as client:
        return str(client.login_code()["url"])


class Visitor:
    """A browser's page with the dashboard in it."""

    def __init__(self, browser: Chromium) -> None:
        self.browser = browser

    def enter(self, url: str, token: str, page: str = "now") -> None:
        """Open a log-in link."""
        self.browser.open(link(url, token))
        if page != "now":
            self.go(page)

    def go(self, page: str) -> None:
        self.browser.evaluate(f"location.hash = '#/' + {json.dumps(page)}")
        self.browser.wait_for(f"location.hash === '#/' + {json.dumps(page)} && document.querySelector('main h1') !== null")

    def text(self, selector: str = "body") -> str:
        """What is shown there; nothing where there is no such thing."""
        return str(self.browser.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def sees(self, words: str, within: str = "body") -> None:
        """Wait until these words are shown."""
        self.browser.wait_for(f"(document.querySelector({json.dumps(within)})?.innerText ?? '').includes({json.dumps(words)})")

    def buttons(self, within: str = "main") -> list[str]:
        """The names of the buttons that are offered."""
        return list(self.browser.evaluate(f"[...document.querySelectorAll({json.dumps(within + ' button')})].map(b => b.innerText.trim())"))

    def press(self, name: str, within: str = "body") -> None:
        """Press the button of that name, once it is there and can be pressed."""
        is_it = f"b => b.innerText.trim() === {json.dumps(name)} && !b.disabled"
        found = f"[...document.querySelectorAll({json.dumps(within + ' button')})].find({is_it})"
        self.browser.wait_for(f"{found} !== undefined")
        self.browser.evaluate(f"{found}.click()")

    def write(self, field: str, text: str, within: str = "body") -> None:
        """Fill a field in, by its name or by the first word of its label."""
        script = """(within, field, text) => {
            const box = document.querySelector(within);
            const named = box.querySelector(`[name="${field}"]`);
            const label = [...box.querySelectorAll('label')].find(l => l.innerText.trim().startsWith(field));
            const input = named ?? label.querySelector('input, select, textarea');
            input.value = text;
            input.dispatchEvent(new Event(input.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}));
        }"""
        self.browser.evaluate(f"({script})({json.dumps(within)}, {json.dumps(field)}, {json.dumps(text)})")

    def key(self, name: str) -> None:
        """Press a key where the focus is."""
        text = {"Enter": "\r", " ": " "}.get(name, name if len(name) == 1 else "")
        codes = {"Enter": 13, " ": 32, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36}
        common: dict[str, Any] = {"key": name, "windowsVirtualKeyCode": codes.get(name, ord(name[0]))}
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.browser.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def drag(self, selector: str, start: float, end: float) -> None:
        """Draw a band over an element, from one part of its width to another."""
        box = self.browser.evaluate(
            f"(b => [b.x, b.y, b.width, b.height])(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        at = [(box[0] + box[2] * part, box[1] + box[3] / 2) for part in (start, (start + end) / 2, end)]
        for kind, (x, y) in zip(("mousePressed", "mouseMoved", "mouseReleased"), at, strict=True):
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def open_job(self, name: str) -> None:
        """Choose a job in the table by its name: it opens beside the map."""
        self.browser.evaluate(f"{self._row(name)}.click()")

    def tick_job(self, name: str) -> None:
        """Add a job to those that are changed together."""
        self.browser.evaluate(f"{self._row(name)}.querySelector('input').click()")

    def _row(self, name: str) -> str:
        row = f"[...document.querySelectorAll('.grid-space .grid-row')].find(r => r.innerText.includes({json.dumps(name)}))"
        self.browser.wait_for(f"{row} !== undefined")
        return row

    def job_names(self) -> list[str]:
        """The names in the table, from top to bottom."""
        rows = "[...document.querySelectorAll('.grid-space .grid-row')].map(r => [+r.ariaRowIndex, r.querySelector('.c-name').innerText])"
        return [name for _, name in sorted(self.browser.evaluate(rows))]

    def find(self, text: str) -> None:
        """Search the jobs."""
        self.browser.evaluate(
            f"(i => {{ i.value = {json.dumps(text)}; i.dispatchEvent(new Event('input')); }})(document.querySelector('input[type=search]'))"
        )

    def number(self, name: str) -> str:
        return self.text(f"[data-number={name}]")

    def complaints(self) -> list[str]:
        """What the browser complained about, refusals by the service left out."""
        return [error for error in self.browser.errors if EXPECTED not in error]

    def barriers(self) -> list[str]:
        """What the accessibility engine objects to, in the present state of the page."""
        if not self.browser.evaluate("typeof axe === 'object'"):
            self.browser.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.browser.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v =>"
            " v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' | ' + n.failureSummary.slice(0, 200)).join(' || ')))"
        )
        return list(found)
