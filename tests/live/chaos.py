"""A bad day of a service: what users want, what operators change and what breaks, in a random order that a seed gives.

The service is a process of its own, which is killed and started again. Users speak to it over HTTP. What is promised is checked by what
the jobs themselves wrote down (`chaos_job.py`), by what users were told, and by folding the record again.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live.lives import check_promises, told
from tests.live.specs import ENDED, until

from gantline.core.errors import GantlineError
from gantline.live.runners.local.files import read_json, started_at
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options
from gantline.live.service.jobs_folder import JobsFolder
from gantline.live.service.serve import serve
from gantline.live.store import SqlStore

POLICIES = ("las", "srtf", "afs", "fifo")
DEVICES = 4
BRISK = {"min_run": 0.3, "grace": 1.0, "turn": 0.5, "quantum": 0.5}  # jobs of a second stop each other as those of hours do
_JOB = str(Path(__file__).with_name("chaos_job.py"))


@dataclass
class Day:
    """One service and whatever happens to it."""

    folder: Path
    policy: str
    seed: int
    store: str = ""
    chance: random.Random = field(init=False)
    known: list[str] = field(default_factory=list)  # jobs that were acknowledged
    happened: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    service: int = 0
    client: Client | None = None

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.home = Home(self.folder / "home")
        self._clock = self.folder / "clock"

    # --- the service ----------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the service in a process of its own, and wait until it answers."""
        policy = None if self.happened["start"] else self.policy
        options = Options(self.home, f"cpu:{DEVICES}", policy, store=self.store, wall=self._wall, anew=BRISK)
        self.happened["start"] += 1
        self.home.address.unlink(missing_ok=True)
        self.service = os.fork()
        if self.service == 0:
            try:
                os._exit(serve(options, tell=lambda text: print(text, file=sys.stderr)))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        until(lambda: self.home.announced() is not None or self._has_ended())
        assert self.home.announced() is not None, "the service does not start"
        self.client = Client(home=self.home.path, timeout=60.0)

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self.service, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _wall(self) -> float:
        """The clock on the wall, as somebody has set it."""
        return time.time() + float(self._clock.read_text() if self._clock.exists() else 0.0)

    def kill_service(self) -> None:
        """Without a warning; meanwhile its jobs go on, or their keepers break as well."""
        self.client.close()
        assert not self._has_ended(), "the service has ended by itself"
        os.kill(self.service, signal.SIGKILL)
        os.waitpid(self.service, 0)
        if self.chance.random() < 0.5:
            self.break_keeper()
        if self.chance.random() < 0.3:
            self.set_clock()
        self.start()

    # --- what users and operators want ----------------------------------------------------------------------------------
    def submit(self) -> None:
        """Small and large jobs, jobs that can grow, arrays, some that wait for others."""
        steps, chance = self.chance.randint(3, 40), self.chance
        sizes = chance.choice(("1", "1", "2", "3", "1:3", "1:4"))
        spec: dict[str, Any] = {"resources": {"gpus": sizes}, "checkpoint": {"grace": 2}, "retry": {"max": 50, "backoff": 0.01}}
        spec["estimate"] = chance.choice((1, 10, 100))
        if chance.random() < 0.2:
            spec["array"] = f"0-{chance.randint(1, 4)}%2"
        if self.known and chance.random() < 0.2:
            spec["after"] = [{"job": chance.choice(self.known[-5:]), "when": "any"}]
        run = [sys.executable, "-S", "-E", _JOB, str(self.folder), str(steps), *(["hide"] if chance.random() < 0.2 else [])]
        self.known += self.client.submit(run, **spec)

    def ask(self) -> None:
        """Whatever can be wanted of a job, whether or not that makes sense."""
        if self.known:
            job, request = (
                self.chance.choice(self.known[-8:]),
                self.chance.choice(("cancel", "hold", "release", "requeue", "resize", "save")),
            )
            self.client.resize(job, self.chance.randint(1, 3)) if request == "resize" else getattr(self.client, request)(job)

    def change_node(self) -> None:
        act = self.chance.choice(("cordon", "drain", "uncordon", "uncordon"))
        getattr(self.client, act)(self.chance.choice(("cpu", *(f"cpu:{k}" for k in range(DEVICES)))))

    def switch_policy(self) -> None:
        self.client.use_policy(self.chance.choice(POLICIES))

    # --- what breaks ----------------------------------------------------------------------------------------------------
    def set_clock(self) -> None:
        """Forwards or back, by up to a day."""
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(str(self.chance.uniform(-86_400.0, 86_400.0)))
        fresh.replace(self._clock)  # at once: the service reads it at any time

    def break_keeper(self) -> None:
        """A keeper, the process above it or a rank is killed, or halted for a while."""
        alive = [state for path in self.home.jobs.glob("*/*/state.json") if (state := read_json(str(path))) and state["phase"] != "over"]
        if not alive:
            return
        state = self.chance.choice(alive)
        number = self.chance.choice((signal.SIGKILL, signal.SIGSTOP))
        pid, born = self.chance.choice([(state["pid"], state["born"]), *((one["pid"], one["born"]) for one in state.get("ranks", ()))])
        if number == signal.SIGKILL and self.chance.random() < 0.2:
            pid, born = state["above"], state["above_born"]
        if started_at(pid) == born:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                if number == signal.SIGSTOP and self.chance.random() < 0.7:
                    time.sleep(self.chance.uniform(0.0, 0.3))
                    os.kill(pid, signal.SIGCONT)

    # --- all of it ------------------------------------------------------------------------------------------------------
    def live(self, seconds: float) -> None:
        """So long, then everything is let go on until all jobs have ended; then the end of the service."""
        acts: list[tuple[Callable[[], None], int]] = [(self.submit, 8), (self.ask, 8), (self.change_node, 3), (self.switch_policy, 1)]
        acts += [(self.set_clock, 1), (self.break_keeper, 6), (self.kill_service, 2)]
        self.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            (act,) = self.chance.choices([act for act, _ in acts], [weight for _, weight in acts])
            self.happened[act.__name__] += 1
            try:
                act()
            except GantlineError as error:  # what was acknowledged is checked later
                self.refused[f"{act.__name__}: {error.what}"] += 1
            time.sleep(self.chance.uniform(0.0, 0.2))
        self._settle()
        self._end()

    def _settle(self) -> None:
        self.client.uncordon("cpu")
        for device in range(DEVICES):
            self.client.uncordon(f"cpu:{device}")

        def all_over() -> bool:
            for path in self.home.jobs.glob("*/*/state.json"):  # nothing stays halted
                state = read_json(str(path)) or {}
                if state.get("phase") != "over" and state.get("born") == started_at(int(state.get("pid", -1))):
                    for pid in [state["pid"], *(one["pid"] for one in state.get("ranks", ()))]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGCONT)
            jobs = self.client.jobs()
            held = [job["id"] for job in jobs if job["reason"] == "held"]
            with contextlib.suppress(GantlineError):
                if held:
                    self.client.release(*held)
            return all(job["state"] in ENDED and not job["devices"] for job in jobs)

        try:
            until(all_over)
        except AssertionError:
            left = [job for job in self.client.jobs() if job["state"] not in ENDED or job["devices"]]
            shown = [{key: job[key] for key in ("id", "state", "why", "epoch", "devices", "gpus", "restarts", "failures")} for job in left]
            raise AssertionError(f"no end of {shown}; {self.client.status()['incidents']}") from None

    def _end(self) -> None:
        assert not self._has_ended(), "the service has ended by itself"
        self.client.shutdown(drain=True)
        self.client.close()
        _, status = os.waitpid(self.service, 0)
        assert os.waitstatus_to_exitcode(status) == 0

    # --- what is promised -----------------------------------------------------------------------------------------------
    def check(self) -> None:
        """From what the jobs wrote, what users were told and what the record says."""
        jobs = check_promises(self.folder, self.store or self.home.store, self.home.jobs.glob("*/checkpoint/steps"))
        store = SqlStore.open(self.store or self.home.store, write=False)
        numbers = Counter(line["decision"] for _, line in store.journal(kind="decision"))
        aside = store.aside()
        store.close()
        assert set(self.known) <= set(jobs), f"acknowledged jobs are lost: {set(self.known) - set(jobs)}"
        assert {job["state"] for job in jobs.values()} <= set(ENDED)
        done = {line[0] for line in told(self.folder, "done")}
        assert {id for id, job in jobs.items() if job["state"] == "succeeded"} <= done, "one that has not done its work did not succeed"
        assert not aside, f"lines were set aside: {aside}"
        assert max(numbers.values(), default=0) <= 1, "a decision is recorded twice"
        assert not JobsFolder(self.home.jobs).running(), "keepers are left"
