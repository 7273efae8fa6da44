"""Devices that stay as they are stay the same values; those that change say what they are now."""

from __future__ import annotations

from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Device, Node
from gantline.core.tables import Tables
from gantline.core.windows import AdvanceWindow
from gantline.live.scheduler.view import DeviceViews


def test_only_what_changes_is_made_anew() -> None:
    tables = Tables.empty(parse_cluster("2x2"))
    tables.ids = ["a", "b"]
    views = DeviceViews()
    first = views.look(tables, {})
    assert [(one.name, one.up, one.jobs) for one in first] == [(f"node{k // 2}:{k % 2}", True, ()) for k in range(4)]
    assert views.look(tables, {}) is first, "nothing has happened"
    busy = views.look(tables, {1: {0}, 2: {1, 0}})
    assert [one.jobs for one in busy] == [(), ("a",), ("a", "b"), ()]
    assert busy[0] is first[0]
    assert busy[3] is first[3]
    tables.NI[Node.UP, 1] = 0
    down = views.look(tables, {1: {0}, 2: {1, 0}})
    assert [one.up for one in down] == [True, True, False, False]
    assert down[1] is busy[1]
    tables.windows["night"] = AdvanceWindow(0.0, 9.0, "night", places=("node0:0",))
    kept = views.look(tables, {1: {0}, 2: {1, 0}})
    assert [one.windows for one in kept] == [("night",), (), (), ()]
    tables.D[Device.CLOSED, 0] = 1
    assert not views.look(tables, {})[0].up
    tables.kept_free.add(0)
    assert views.look(tables, {})[0].up, "cordoned for its window, and for nothing else"
