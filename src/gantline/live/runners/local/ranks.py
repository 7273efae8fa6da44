"""The processes of one incarnation: which are ranks of the gang, which are about to join it, which have left. Keepers import this.

A gang changes without a stop in four steps. Newcomers are started beside it and make themselves ready; the first rank decides at a
step of its own that the gang changes now (``switch.EPOCH``, which only one can write); the ranks that stay and the newcomers form a new
gang and report it (``switched``); those that leave end. Until the decision newcomers do not belong to the gang: if one of them ends, the
keeper decides that the gang stays as it is. After it the gang changes whole or ends.
"""

from __future__ import annotations

import os
import signal
import time

from gantline.live.runners.local.files import read_json, say_first

TYPE_CHECKING = False

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from typing import Any

    from gantline.live.runners.local.files import Values
    from gantline.live.runners.local.forked_programs import ForkedRank


class Ranks:
    """Processes by number, in the order in which they were started."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes] | ForkedRank] = []
        self.exits: dict[int, int] = {}
        self.gang: list[int] = []  # the process of each rank
        self.newcomers: list[int] = []  # processes that are about to join
        self.change: dict[str, Any] | None = None  # the change that is under way
        self.known = 0  # the epoch of the newest change
        self.decided = False  # it happens: newcomers are ranks from now on, in all but name
        self.first_failed: int | None = None
        self.failed_changing = False

    def __bool__(self) -> bool:
        return bool(self.processes)

    @property
    def group(self) -> int:
        """The process group of all of them; 0: none has started yet."""
        return (self.processes[0].pid or 0) if self.processes else 0

    @property
    def finished(self) -> bool:
        return all(process in self.exits for process in self.gang)

    @property
    def codes(self) -> list[int]:
        """Exit codes of the gang's ranks."""
        return [self.exits[process] for process in self.gang if process in self.exits]

    @property
    def exit(self) -> int:
        """The exit code of the gang: that of the first rank that failed, if one has."""
        if self.first_failed is not None:
            return self.exits[self.first_failed]
        return next((code for code in self.codes if code), 0)

    def rank_of(self, process: int) -> int:
        """The rank that a process is, will be or was."""
        if process in self.gang:
            return self.gang.index(process)
        if process in self.newcomers and self.change is not None:
            return len(self.change["members"]) + self.newcomers.index(process)
        return process

    def reap(self, asked_stop: bool) -> bool:
        """Note which ranks have ended; whether all others have to end, too: a gang runs whole or not at all."""
        fatal = False
        for number, process in enumerate(self.processes):
            if number in self.exits or process.poll() is None:
                continue
            self.exits[number] = process.returncode or 0
            counts = number in self.gang or (self.decided and number in self.newcomers)
            several = len(self.gang) > 1 or self.decided
            if process.returncode and counts and several and not asked_stop and self.first_failed is None:
                self.first_failed, self.failed_changing = number, self.decided
                fatal = True
        return fatal

    # --- changes --------------------------------------------------------------------------------------------------------
    def begin_change(self, change: dict[str, Any], newcomers: list[int]) -> None:
        """Begin a change to another gang, which happens as soon as all newcomers are ready."""
        self.change, self.known, self.newcomers, self.decided = change, int(change["epoch"]), newcomers, False

    def follow_change(self) -> dict[str, Any] | None:
        """Check the change for progress; what to report to the service, if there is something."""
        change = self.change
        if change is None:
            return None
        epoch, path = self.known, os.path.join(self.folder, f"switch.{self.known}")
        decision = read_json(path)
        if decision is None:
            why = self._hopeless(change)
            if not why:
                return None
            decision = say_first(path, {"epoch": epoch, "refused": why})
        if decision.get("refused"):
            for number in self.newcomers:
                self.processes[number].kill()
            self.change, self.newcomers = None, []
            return {"refused": {"epoch": epoch, "why": str(decision["refused"])}}
        self.decided = True
        if read_json(os.path.join(self.folder, "switched")) != epoch:
            lost = next((number for number in self.newcomers if number in self.exits), None)
            if lost is None or self.first_failed is not None:
                return None
            self.first_failed, self.failed_changing = lost, True  # it had ended when the others decided to take it in
            return {"broken": epoch}
        stays = [self.gang[rank] for rank in change["members"]] + self.newcomers
        if not all(process in self.exits for process in self.gang if process not in stays):
            return None  # the devices are free once the leaving ranks are gone
        self.gang, self.change, self.newcomers, self.decided = stays, None, [], False
        return {"gang": epoch}

    def _hopeless(self, change: dict[str, Any]) -> str:
        """Why the change has become impossible; empty: it is still possible."""
        gone = [number for number in self.newcomers if number in self.exits]
        if gone:
            code = self.exits[gone[0]]
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            return f"rank {self.rank_of(gone[0])} {how} before it could join"
        return str(change.get("refuse", ""))


# What a gang on several nodes is, by what its parts are. Keepers import this; it needs the standard library only.


def combined(states: Sequence[Values], asked_stop: bool) -> Values:
    """What the gang is, by what its parts are."""
    phases = [str(state.get("phase", "starting")) for state in states]
    found: Values = {
        "revision": min(int(one.get("revision", 0)) for one in states),
        "lost": sum(int(one.get("lost", 0)) for one in states),
    }
    found["mark"] = max(int(one.get("mark", -1)) for one in states)
    if picked := [name for one in states for name in one.get("actual", ())]:
        found["actual"] = picked
    for name in ("started", "ended"):
        known = [float(one[name]) for one in states if name in one]
        found |= {name: max(known)} if len(known) == len(states) else {}
    if any(phase != "over" for phase in phases):
        rest = {phase for phase in phases if phase != "over"}
        found["phase"] = rest.pop() if len(rest) == 1 and len(phases) == phases.count(phases[0]) else _mixed(phases)
        return found
    bad = next((one for one in _by_end(states) if one.get("fault") or (one.get("cause") == "failed" and not asked_stop)), None)
    causes = {one.get("cause") for one in states}
    cause = "failed" if bad is not None else "stopped" if "stopped" in causes else "failed" if "failed" in causes else "finished"
    first = bad or next((one for one in states if one.get("cause") == cause), states[0])
    found |= {
        "phase": "over",
        "cause": cause,
        "exit": first.get("exit"),
        "forced": cause == "stopped" and any(one.get("forced") for one in states),
    }
    found |= {name: first[name] for name in ("why", "fault") if first.get(name)}
    return {"ended": time.time(), **found}


def _mixed(phases: Sequence[str]) -> str:
    """Parts that have finished before the others do not stop the gang from running."""
    for phase in ("starting", "stopping"):
        if phase in phases:
            return phase
    return "suspended" if "suspended" in phases else "running"


def _by_end(states: Sequence[Values]) -> list[Values]:
    """Those that ended first; a part that was lost is not known to have ended at any time, and comes before all."""
    return sorted(states, key=lambda one: float(one.get("ended", 0.0)))
