"""An array is one input, however many jobs it has: one line of the journal, one common part in the store, one request."""

from __future__ import annotations

from pathlib import Path

from tests.live.specs import must_succeed, replays, running, shell, state, submit, until

from gantline.core.inputs import Action
from gantline.live.jobs.spec_file import spec_of
from gantline.live.store import SqlStore


def inputs_of(store: SqlStore, kind: str) -> list[dict[str, object]]:
    return [line for _, line in store.journal() if line.get("input") == kind]


def test_an_array_and_what_is_asked_of_it_are_one_line_each(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        blocker = submit(scheduler, "sleep 1000")
        tasks = scheduler.submit(spec_of({"run": ["true"], "array": "5-204"}), "ann")
        assert tasks == [f"2_{k}" for k in range(5, 205)]
        scheduler.request(tasks[10:], Action.CANCEL, "ann")
        until(lambda: state(scheduler, tasks[-1]) == "cancelled")
        scheduler.request([blocker], Action.CANCEL)
        must_succeed(scheduler, *tasks[:10])
    (_, array), (many, _) = inputs_of(store, "submit"), inputs_of(store, "cancel")
    assert array["ids"] == tasks
    assert "id" not in array["job"]  # type: ignore[operator]
    assert [many["job"], *many["others"]] == tasks[10:]  # type: ignore[misc]
    store.close()
    replays(tmp_path / "store.sqlite")


def test_tasks_are_stored_once_and_come_back_whole(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        scheduler.submit(shell("sleep 1000"))
        spec = {"run": ["echo", "task $ARRAY_INDEX"], "name": "sweep", "array": "0-2%1", "env": {"A": "1"}}
        tasks = scheduler.submit(spec_of(spec), "ann", "once")
        before = {name: (scheduler.registry[name].spec, scheduler.registry[name].launch, scheduler.registry[name].holds) for name in tasks}
        assert [before[name][1].command for name in tasks] == [("echo", f"task {k}") for k in range(3)]
        assert [sorted(before[name][2]) for name in tasks] == [[], ["array-limit"], ["array-limit"]]
        with store.transaction() as write:
            write.entries([])
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    one = store.job(tasks[2])
    assert (one["user"], one["request"], one["spec"]["index"], one["launch"]["env"]) == ("ann", "once", 2, {"A": "1"})
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        for name in tasks:
            job = scheduler.registry[name]
            assert (job.spec, job.launch, job.holds) == before[name]
        assert scheduler.submit(spec_of(spec), "ann", "once") == tasks
    store.close()
