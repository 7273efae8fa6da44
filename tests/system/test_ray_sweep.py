"""Sweeps on a Ray cluster: the same results as here, also where a worker dies over a run."""

from __future__ import annotations

from pathlib import Path

from tests.system.ray_cluster import RayCluster

from gantline.lab.experiment.grid import Grid, policies_of
from gantline.lab.experiment.running.ray_backend import OnRay
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import run_sweep
from gantline.lab.experiment.trace_source import TraceSource

_JOBS = "job,arrival,gpus,duration\na,0,1,10\nb,1,2,5\nc,2,4,3\nd,3,1,30\n"
_MORTAL = '''
"""FIFO, but for a worker that dies over its first run."""
import os
from gantline.policies.fifo import Fifo


class Mortal(Fifo):
    name = "mortal"

    def decide(self, snapshot):
        if not os.path.exists({mark!r}):
            open({mark!r}, "x").close()
            os.kill(os.getpid(), 9)
        return super().decide(snapshot)
'''


CLUSTER = {"nodes": 1}


def test_a_sweep_on_a_cluster_finds_what_one_here_finds(tmp_path: Path, ray_cluster: RayCluster) -> None:
    (tmp_path / "jobs.csv").write_text(_JOBS)
    (tmp_path / "mortal.py").write_text(_MORTAL.format(mark=str(tmp_path / "died")))
    base = Setting(TraceSource(file=str(tmp_path / "jobs.csv")), "1x4", "fifo")
    cases = Grid(base, policies_of(["fifo", "srtf", f"{tmp_path}/mortal.py:Mortal"])).cases()
    there = run_sweep(cases, tmp_path / "there", backend=OnRay(ray_cluster.address))
    assert not there.failures
    assert (tmp_path / "died").exists(), "no worker has died"
    again = run_sweep(cases, tmp_path / "there", backend=OnRay("127.0.0.1:1"))  # nothing is left to be run, so no cluster is asked
    assert again.reused == len(cases)
    here = run_sweep(cases, tmp_path / "here")
    assert [one.measures for one in there.records] == [one.measures for one in here.records]
