"""The terms of jobs that wait are changed: in the journal and in the registry together, so that the next life knows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.specs import must_succeed, replays, running, submit, until

from gantline.core.errors import RefusedError
from gantline.core.inputs import Action
from gantline.live.jobs.spec_file import spec_of
from gantline.live.store import SqlStore


def test_a_change_of_one_task_outlives_a_restart_and_is_replayed(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        blocker = submit(scheduler, "sleep 1000")
        until(lambda: scheduler.view().jobs[blocker].state == "running")
        first, second, third = scheduler.submit(spec_of({"run": ["true"], "name": "sweep", "array": "0-2", "limits": {"time": 60}}))
        for task, name in ((first, "one"), (second, "two")):
            scheduler.requests.change([task], {"priority": "high", "time_limit": "2h", "name": name})
        version = scheduler.view().standing.version
        scheduler.requests.change([second], {"estimate": "5m"})
        assert scheduler.view().standing.version > version, "forecasts do not hold any more"
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        jobs = scheduler.view().jobs
        assert [(jobs[one].name, jobs[one].estimate) for one in (first, second, third)] == [("one", 7200), ("two", 300), ("sweep", 60)]
        assert jobs[first].priority == jobs[second].priority > jobs[third].priority
        assert [scheduler.registry[one].launch.time_limit for one in (first, second, third)] == [7200, 7200, 60]
        assert [scheduler.registry[one].launch.array_index for one in (first, second, third)] == [0, 1, 2]
        scheduler.request([blocker], Action.CANCEL)
        must_succeed(scheduler, first, second, third)
        with pytest.raises(RefusedError, match="has ended"):
            scheduler.requests.change([first], {"name": "late"})
    store.close()
    replays(tmp_path / "store.sqlite")
