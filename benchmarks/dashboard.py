"""The dashboard in a browser: 10,000 jobs, 1,000 nodes of eight devices, 200 changes an update. `--updates N` for another number of them.

CPU milliseconds are those of the page's main thread; the service is one of nothing but answers (`tests/system/large_board.py`).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.system.chromium import Chromium
from tests.system.large_board import LargeCluster, LargeService

PACE = 0.25  # seconds between updates
# Notes when an update has come and when the frame that shows it has been handed over; runs before any script of the page.
WATCH = """
sessionStorage.setItem('gantline.session', 'any');
window.toPaint = [];
const parse = JSON.parse, channel = new MessageChannel();
let came = 0, began = 0;
JSON.parse = (text, ...more) => { if (text.length > 2000) came = performance.now(); return parse(text, ...more); };
channel.port1.onmessage = () => window.toPaint.push(performance.now() - began);
addEventListener('DOMContentLoaded', () => new MutationObserver(() => {
  began = came;
  requestAnimationFrame(() => channel.port2.postMessage(0));
}).observe(document.documentElement, {attributes: true, attributeFilter: ['data-version']}));
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=200)
    updates = parser.parse_args().updates
    service = LargeService(LargeCluster(), pace=PACE, updates=updates)
    with tempfile.TemporaryDirectory() as home:
        browser = Chromium(Path(home))
        try:
            measure(browser, service, updates)
        finally:
            browser.close()
            service.close()


def measure(browser: Chromium, service: LargeService, updates: int) -> None:
    browser.become(1400)
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    browser.call("Performance.enable", timeDomain="threadTicks")
    browser.open(service.url)
    print(f"load average {os.getloadavg()[0]:.1f}")
    first, spent = browser.evaluate("performance.now()") / 1000, 1000 * figures(browser)["TaskDuration"]
    print(f"first data after {first:.2f} s, {spent:.0f} CPU ms of the main thread")
    time.sleep(2)
    before, heap = figures(browser), held(browser)
    service.go.set()
    waits = time.monotonic() + 600 + 2 * PACE * updates
    while browser.evaluate("window.toPaint.length") < updates and time.monotonic() < waits:
        time.sleep(1)
    after, seen = figures(browser), sorted(browser.evaluate("window.toPaint"))
    whole, scripts, layout = (
        1000 * (after[name] - before[name]) / len(seen) for name in ("TaskDuration", "ScriptDuration", "LayoutDuration")
    )
    print(f"{len(seen)} updates: {whole:.1f} CPU ms each, of it scripts {scripts:.1f}, layout {layout:.1f}")
    print(f"to paint: P50 {seen[len(seen) // 2]:.0f} ms, P95 {seen[int(0.95 * len(seen))]:.0f} ms")
    print(f"memory of scripts: {heap:.1f} MB before, {held(browser):.1f} MB after; elements {before['Nodes']:.0f} and {after['Nodes']:.0f}")


def figures(browser: Chromium) -> dict[str, Any]:
    return {one["name"]: one["value"] for one in browser.call("Performance.getMetrics")["metrics"]}


def held(browser: Chromium) -> float:
    """Megabytes that scripts hold after a collection."""
    browser.call("HeapProfiler.collectGarbage")
    return float(figures(browser)["JSHeapUsedSize"]) / 1e6


if __name__ == "__main__":
    main()
