"""What watching a cluster yields: a snapshot, the policy that is in force there, and what ended jobs show of estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]
"""A JSON document."""


@dataclass(frozen=True)
class ClusterLook:
    """One look at a cluster that others schedule."""

    source: str
    at: float  # seconds since 1970
    zero: float  # the snapshot's own time 0, likewise
    snapshot: Document
    policy: str
    settings: Document
    ratios: tuple[float, ...] = ()  # true run time over estimate of jobs that ended
    notes: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()  # the jobs that wait, in the order in force
    run_times: str = ""  # what is known of them, in words
    arrivals: tuple[Document, ...] = ()  # the latest jobs, of which newcomers are drawn

    def as_json(self) -> Document:
        """The document that ``--snapshot`` takes."""
        present = {"policy": self.policy, "settings": self.settings}
        head = {"kind": "watched", "version": 1, "source": self.source, "at": self.at, "zero": self.zero, "present": present}
        return {**head, "ratios": list(self.ratios), "arrivals": list(self.arrivals), "notes": self._remarks(), "snapshot": self.snapshot}

    def lines(self) -> list[str]:
        """The same for people, in brief."""
        nodes, jobs, down = self.snapshot["cluster"]["nodes"], self.snapshot["jobs"], set(self.snapshot["down"])
        gpus: Counter[str] = Counter()
        for node in nodes:
            gpus[node["type"]] += 0 if node["name"] in down else node["gpus"]
        runs = [job for job in jobs if job.get("devices") or job.get("node")]
        held, waits = sum(len(job.get("devices", ())) for job in runs), [job for job in jobs if job not in runs]
        of_types = ", ".join(f"{count} {kind}" for kind, count in gpus.items() if count)
        down_text = f", {len(down)} down" if down else ""
        found = [
            f"{self.source} at {spelled_time(self.at)}: {len(nodes)} nodes{down_text}; GPUs: {of_types or 'none'}; {held} in use",
            f"{len(runs)} jobs run, {len(waits)} wait for {sum(job['gpus'] for job in waits)} GPUs",
            f"in force: {self.policy} " + " ".join(f"{name}={value}" for name, value in self.settings.items()),
        ]
        return found + [f"note: {note}" for note in self._remarks()]

    def _remarks(self) -> list[str]:
        return [*self.notes, *([self.run_times] if self.run_times else [])]


def left_out_notes(left_out: Mapping[str, int]) -> list[str]:
    """How many jobs a snapshot or a comparison cannot hold, by reason."""
    return [f"{count} job{'s' if count > 1 else ''} left out, which {why}" for why, count in sorted(left_out.items())]


def spelled_time(at: float) -> str:
    """An instant, given in seconds since 1970."""
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
