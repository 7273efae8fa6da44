"""Draw what a live service has done: one line per device, one colour per job.

    gantline up --devices cpu:4 --policy las --detach
    ...
    python examples/live_gantt.py live.png

It reads the events that every client may read; a job holds its devices from STARTING until it has given them up.
"""

from __future__ import annotations

import sys
from typing import Any

from gantline.live.service.client import Client

HOLDS = ("starting", "running", "resizing", "preempting")


def spans(events: list[dict[str, Any]]) -> list[tuple[str, str, float, float]]:
    """(job, device, from, to) for every interval of a job on a device; who is still there stays until the last event."""
    open_: dict[str, tuple[float, tuple[str, ...]]] = {}
    found: list[tuple[str, str, float, float]] = []
    for event in events:
        if event["event"] != "state":
            continue
        job, now = event["job"], event["time"]
        devices = tuple(event.get("devices", ())) if event["state"] in HOLDS else ()
        since, before = open_.pop(job, (now, ()))
        if before and before != devices:
            found += [(job, device, since, now) for device in before]
            since = now
        if devices:
            open_[job] = (since, devices)
    end = events[-1]["time"] if events else 0.0
    return found + [(job, device, since, end) for job, (since, devices) in open_.items() for device in devices]


def draw(intervals: list[tuple[str, str, float, float]], target: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    devices = sorted({device for _, device, _, _ in intervals})
    jobs = sorted({job for job, _, _, _ in intervals}, key=lambda job: (len(job), job))
    first = min(begin for _, _, begin, _ in intervals)
    colours = plt.get_cmap("tab20")
    figure, axes = plt.subplots(figsize=(9, 0.6 + 0.45 * len(devices)), layout="constrained")
    for job, device, begin, end in intervals:
        colour = colours(jobs.index(job) % 20)
        axes.barh(devices.index(device), end - begin, left=begin - first, height=0.86, color=colour, edgecolor="white", linewidth=0.5)
        if end - begin > 0.6:
            axes.text((begin + end) / 2 - first, devices.index(device), job, ha="center", va="center", fontsize=8)
    axes.set_yticks(range(len(devices)), devices)
    axes.invert_yaxis()
    axes.set_xlabel("seconds since the first start")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(target, dpi=160)


if __name__ == "__main__":
    with Client() as client:
        draw(spans(client.events(limit=10_000)), sys.argv[1] if len(sys.argv) > 1 else "live.png")
