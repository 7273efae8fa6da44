"""Windows on wall time: written down, kept over a restart, and folded again to the same plans."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.specs import replays, running, shell, state, submit, until, until_running

from gantline.core.errors import NotFoundError, RefusedError
from gantline.core.windows import AdvanceWindow
from gantline.live.store import SqlStore


@pytest.mark.parametrize("every", [3, 10_000], ids=["checkpoints", "journal"])
@pytest.mark.parametrize("policy", ["srtf", "equal-share"])
def test_a_window_survives_a_restart_and_the_past_gives_the_same_plans(tmp_path: Path, policy: str, every: int) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:3", policy, store=store, checkpoint_every=every) as scheduler:
        wide = submit(scheduler, "sleep 600", gpus=3)
        until_running(scheduler, wide)
        soon = scheduler.clock.now() + 0.3
        window = scheduler.reserve(AdvanceWindow(soon, soon + 3600.0, "demo", gpus=2, users=("ann",)))
        assert len(window.places) == 2
        until(lambda: state(scheduler, wide) == "pending" and scheduler.view().jobs[wide].reason == "window")
        (hers,) = scheduler.submit(shell("sleep 600", gpus=2), "ann")
        small = submit(scheduler, "sleep 600")
        until(lambda: {state(scheduler, hers), state(scheduler, small)} == {"running"})
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:3", None, store=store, checkpoint_every=every) as scheduler:  # type: ignore[arg-type]
        assert [one.name for one in scheduler.view().windows] == ["demo"]
        assert set(scheduler.view().jobs[hers].devices) == set(window.places)
        with pytest.raises(RefusedError, match="'demo' already"):
            scheduler.reserve(AdvanceWindow(soon, soon + 9.0, "demo", gpus=1))
        with pytest.raises(NotFoundError, match=r"no window 'dmeo'.*did you mean 'demo'"):
            scheduler.unreserve("dmeo")
        scheduler.unreserve("demo")
        assert not scheduler.view().windows
        assert not any(device.windows for device in scheduler.view().devices)
    store.close()
    found = replays(tmp_path / "store.sqlite")
    assert found.decisions >= 3
