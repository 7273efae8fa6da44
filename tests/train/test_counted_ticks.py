"""The experiment of `examples/live_gpu` in small: real processes that only wait, and a clock that counts ticks.

A tick comes when nothing is left to happen before it: every order has reached its process, every process whose tick has come is gone, and
the scheduler has decided. So the live run takes what its jobs take, on a machine of any speed, and the bars of the terms hold to the tick.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import LIMIT, end_all
from tests.train.conftest import LIVE_GPU

from gantline.engine.executor import Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.loop_thread import WallClock
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore
from gantline.models.profiles.bundle import Bundle, Profile, SampledLine, Speed
from gantline.traces.files.speeds import write_bundle

START, RESUME, LEAVE = 31, 17, 7  # ticks
PACE = {1: 100, 2: 60, 4: 40}  # hundredths of a tick that a step of one device takes, by the size of the gang
TERMS = {
    "seed": 28,
    "jobs": 12,
    "gpus": [1, 1, 1, 2, 4],
    "seconds": [127.0, 211.0, 307.0, 453.0],
    "load": 0.8,
    "policies": {
        "fifo": {"policy": "fifo"},
        "srtf": {"policy": "srtf", "min_run": 80.0},
        "las": {"policy": "las", "settings": {"service": "gpu-time"}, "round": 100.0},
        "tiresias": {"policy": "tiresias", "settings": {"limits": "400"}, "round": 100.0},
        "afs-l": {"policy": "afs", "settings": {"resize_cost": 50.0, "rate_limit": 100.0}},
        "gavel": {"policy": "gavel.max_min_fairness", "round": 100.0},
        "sia": {"policy": "sia", "round": 100.0},
    },
}

#: It goes by the tick that the board shows, begins where its checkpoint is, and says on the board what it is about to do.
_WAITS = """
cd "$BOARD"; me=$GANTLINE_JOB_ID.$GANTLINE_EPOCH; saved=$GANTLINE_CHECKPOINT/done; stop=
tell() { echo "$2" > "$me.$1.new"; mv "$me.$1.new" "$me.$1"; }
trap 'stop=1' TERM
eval pace=\\$PACE_$GANTLINE_GPUS
did=0; start=$START; [ ! -e "$saved" ] || { read did < "$saved"; start=$RESUME; }
read now < now; begin=$((now + start)); due=$((begin + ((STEPS - did) * pace + 99) / 100))
tell due $due
while [ $now -lt $due ]; do
    if [ "$stop" ]; then
        [ $now -ge $begin ] || now=$begin
        leaves=$((now + LEAVE)); did=$((did + (now - begin) * 100 / pace))
        tell leaves $leaves
        while [ $now -lt $leaves ]; do sleep 0.03; read now < now; done
        echo $did > "$saved"
        exit 75
    fi
    sleep 0.03; read now < now
done
"""


def profiles() -> Bundle:
    """Two kinds that are as fast as the processes below."""

    def speed(size: int) -> Speed:
        seconds = PACE[size] / 100 * size
        return Speed(SampledLine(float(START), seconds, seconds, seconds), ((1.0, 1.0),), leave=float(LEAVE), resume=float(RESUME))

    return Bundle({kind: Profile(kind, alone={("cpu", size): speed(size) for size in PACE}) for kind in ("one", "other")})


@dataclass
class Ticks:
    """Time, and the board on which processes see it and say what they do."""

    board: Path
    now: int = 0
    looks: int = 0  # at the clock, since the tick
    orders: dict[tuple[int, int], Verb] = field(default_factory=dict)  # the last one of each run, by row and epoch
    given: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.board.mkdir(parents=True)
        self.go_to(0)

    def go_to(self, tick: int) -> None:
        self.now, self.looks = tick, 0
        (self.board / "now.new").write_text(f"{tick}\n")
        (self.board / "now.new").rename(self.board / "now")

    def clock(self) -> float:
        """A little later with every look: no two messages come at one instant."""
        self.looks += 1
        return self.now + min(self.looks * 1e-9, 0.01)

    def said(self, job: str, epoch: int, word: str) -> int | None:
        path = self.board / f"{job}.{epoch}.{word}"
        return int(path.read_text()) if path.exists() else None


class TickRunner(LocalRunner):
    """Real processes; it keeps each order once."""

    ticks: Ticks

    def send(self, order: Any, now: float) -> None:
        key = order.row, order.epoch
        if self.ticks.orders.get(key) is not order.verb:
            self.ticks.orders[key] = order.verb
            self.ticks.given.append({"time": now, "order": order.verb.value, "row": order.row, "devices": list(order.devices)})
        super().send(order, now)


class LiveRun:
    """Jobs under one policy, tick by tick."""

    def __init__(self, scheduler: Scheduler, ticks: Ticks) -> None:
        self.scheduler, self.ticks = scheduler, ticks
        self.ids: list[str] = []

    def _next(self) -> float:
        """The next tick at which anything happens by itself; -1: something is still under way. To be asked between two steps."""
        loop, ticks = self.scheduler.loop, self.ticks
        found, names = loop.agenda.next_look(), loop.state.tables.ids
        for (row, epoch), verb in ticks.orders.items():
            live = loop.reconciler.live.get(row)
            if live is None or live.epoch != epoch:
                continue
            tick = ticks.said(names[row], epoch, "leaves" if verb is Verb.STOP else "due")
            if tick is None or tick <= ticks.now or not live.started:
                return -1.0
            found = min(found, tick)
        return -1.0 if found <= ticks.now + 0.01 or not loop.is_quiet else found

    def rest(self) -> float:
        """Wait until nothing is left to happen at this tick; the next one at which something will."""
        end, before = time.monotonic() + LIMIT, (-1, -1.0)
        while time.monotonic() < end:
            self.scheduler.loop.messages.ring()
            now = len(self.ticks.given), self.scheduler.ask(self._next)
            if now[1] > 0 and now == before:
                return now[1]
            before = now
            time.sleep(0.005)
        raise AssertionError(f"tick {self.ticks.now} did not end: {self.scheduler.view()}")

    def run(self, jobs: list[Any]) -> dict[str, Any]:
        arrivals = [math.ceil(job.arrival) for job in jobs]
        while True:
            for job, at in zip(jobs[len(self.ids) :], arrivals[len(self.ids) :]):
                if at <= self.ticks.now:
                    self.ids += self.scheduler.submit(job)
            following = self.rest()
            shown = self.scheduler.view().jobs
            if len(self.ids) == len(jobs) and all(one.finished for one in shown.values()):
                break
            self.ticks.go_to(math.ceil(min([following, *arrivals[len(self.ids) : len(self.ids) + 1]])))
        rows = [shown[id].to_json() for id in self.ids]
        assert {row["state"] for row in rows} == {"succeeded"}
        names = self.scheduler.loop.state.tables.ids
        orders = [{**one, "job": self.ids.index(names[one["row"]])} for one in self.ticks.given]
        times = [{"arrival": row["submitted"], "jct": row["finished"] - row["submitted"], "epochs": row["epoch"]} for row in rows]
        return {"jobs": times, "orders": orders}


def waiting(work: Any, board: Path) -> Any:
    """The same job with a program that waits."""
    told = {"BOARD": str(board), "STEPS": str(work.steps), "START": str(START), "RESUME": str(RESUME), "LEAVE": str(LEAVE)}
    env = told | {f"PACE_{size}": str(pace) for size, pace in PACE.items()}

    class Waiting(type(work)):  # type: ignore[misc]
        def launch(self) -> Launch:
            return Launch((_WAITS,), shell=True, env=env, grace=LIMIT, resumes=True)

    return Waiting(**{name: getattr(work, name) for name in work.__dataclass_fields__})


@pytest.fixture
def live(parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """A live run of a policy."""
    predict, workload = parts, parts.workload
    write_bundle(profiles(), tmp_path / "profiles.json")

    def run(policy: str) -> dict[str, Any]:
        home = tmp_path / policy
        runner = TickRunner(home, "cpu:4")
        ticks = runner.ticks = Ticks(home / "board")
        monkeypatch.setattr(WallClock, "now", lambda self: ticks.clock())
        monkeypatch.setattr(WallClock, "at", lambda self, wall: float(ticks.now))
        scheduler = Scheduler(MemoryStore(), runner, setup=predict.setup_of(TERMS, policy, str(tmp_path / "profiles.json")))
        scheduler.start()
        try:
            return LiveRun(scheduler, ticks).run([waiting(work, ticks.board) for work in workload.make(profiles(), TERMS, 4)])
        finally:
            scheduler.stop()
            end_all(home)

    return run


def test_live_runs_take_what_was_predicted(live: Callable[[str], dict[str, Any]], parts: Any, tmp_path: Path) -> None:
    """Stops, saves and resumes under one policy, other sizes under the other."""
    names = ["srtf", "afs-l"]
    bars = json.loads((LIVE_GPU / "terms.json").read_text())["bars"]
    runs = {name: [live(name)] for name in names}
    (tmp_path / "live.json").write_text(json.dumps({"devices": "cpu:4", "terms": {**TERMS, "bars": bars}, "policies": runs}))
    found = parts.compare(tmp_path, 2)
    assert any(row["epochs"] > 1 for run in runs["srtf"] for row in run["jobs"]), "some are stopped and go on"
    errors = [abs(found[name]["mean"]["whole"]) for name in names]
    assert max(errors) < bars["mean_each"]
    assert sum(errors) / len(errors) < bars["mean_average"]
    assert max(abs(found[name]["mean"]["clock"]) for name in names) < bars["clock"]
    assert not parts.out_of_order(found)
