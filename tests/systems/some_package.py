"""A package that brings one thing of every kind, and how it gets where packages are found."""

from __future__ import annotations

from pathlib import Path

PARTS = '''
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from gantline import DeviceRule, OrderPolicy, Trace
from gantline.core.columns import Job
from gantline.core.errors import UsageError
from gantline.engine.drivers.faulty import Faults
from gantline.engine.drivers.faulty import FaultyExecutor
from gantline.engine.regime import Regime
from gantline.lab.experiment.cluster_filling import FillOrder, FillScheme
from gantline.engine.imitations.registry import Scope
from gantline.models.model import PerformanceModel
from gantline.registry import HeldAgainst, System


@dataclass(frozen=True)
class Youngest(OrderPolicy):
    """Youngest first."""

    name: ClassVar[str] = "youngest"
    paper: ClassVar[str] = "folklore"

    def key(self, snapshot):
        return -snapshot.jobs.arrival


REGIME, IMITATED = Regime(name="minutes", round=60.0), Regime(name="acme")
SCOPE = Scope("Acme's simulator", frozenset(), {"youngest": ()})


def imitate(simulation, jobs):
    simulation.run()
    return {"simulator": "Acme's"}


def read(src: Path) -> Trace:
    """One job a line: its length."""
    lengths = [float(line) for line in src.read_text().split()]
    return Trace.from_records([{"job": f"j{at}", "arrival": 0.0, "gpus": 1, "duration": one} for at, one in enumerate(lengths)])


def twins(seed, settings):
    return Trace.from_records([{"job": name, "arrival": 0.0, "gpus": 1, "duration": 60.0} for name in ("a", "b")])


def lengths(seed, settings):
    return [30.0, 90.0]


class InOrder(FillScheme):
    """Pods as the file lists them, once each."""

    def order(self, requests, part, target, nodes, seed):
        return FillOrder(np.arange(len(requests)), np.arange(nodes))


IN_ORDER = InOrder()


class Last(DeviceRule):
    """The last free devices."""

    def choose(self, gang, free):
        return sorted(free.devices)[-gang.gpus :]


@dataclass(frozen=True)
class HalfSpeed(PerformanceModel):
    """Everything takes twice as long."""

    def rates(self, gangs):
        return 0.5 * gangs.divided, np.full(len(gangs), np.inf)


def half_speed(jobs, cluster):
    assert len(jobs) and cluster.gpus
    return HalfSpeed()


def slow(state, option):
    return FaultyExecutor(state.tables.F[Job.WORK].copy(), Faults(start=(float(option), float(option))))


def slowdown(folder):
    return Slowed(float((folder / "slowdown.txt").read_text()))


def slowed(jobs, cluster, profiles=None):
    if profiles is None:
        raise UsageError("no slowdown is known", where="--performance slowed", fix="give --profiles DIR")
    return profiles


@dataclass(frozen=True)
class Slowed(PerformanceModel):
    """Everything takes so many times as long."""

    factor: float

    def rates(self, gangs):
        return gangs.divided / self.factor, np.full(len(gangs), np.inf)


SYSTEM = System(
    name="acmesched",
    title="A scheduler that was never published",
    papers=("Nobody: Nothing (NSDI 2030)",),
    policies={"acme.youngest": ".parts:Youngest"},
    placements={"acme.last": ".parts:Last"},
    held_against=(HeldAgainst("nothing", "untested", "tests/none.py"),),
)
'''

STUDY = """
import polars as pl

from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource


class Figure(Study):
    name, paper, figure = "acme-figure", "Nobody: Nothing (NSDI 2030)", "Figure 1: the youngest goes first"
    what, load = "Two jobs on one GPU.", "round"
    terms = {"the second waits for the first": ClaimTerms("the first", "none")}

    def cases(self, scale):
        setting = Setting(TraceSource(generator="twins"), "1x1", "youngest")
        return Grid(setting, (PolicyChoice("youngest"),), vary={"round": (30.0, 60.0)}).cases()

    def claims(self, results, scale):
        longest = results["jct_mean"].max()
        return [Claim("the second waits for the first", "90 s", f"{longest:g} s", longest == 90.0)]

    def table(self, results):
        return results.select("round", "jct_mean")
"""

RUNNER = '''
from gantline.live.runners.local.runner import LocalRunner


class Noted(LocalRunner):
    """This machine, with a note of what it was asked to do."""

    def send(self, order, now):
        with open(self.home / "orders.txt", "a") as notes:
            notes.write(f"{order.verb.value}\\n")
        super().send(order, now)
'''

EVERY_KIND = {
    "policies": "youngest = acmesched.parts:Youngest",
    "regimes": "minutes = acmesched.parts:REGIME\nacme = acmesched.parts:IMITATED",
    "imitations": "acme = acmesched.parts:imitate",
    "scopes": "acme = acmesched.parts:SCOPE",
    "importers": "lengths = acmesched.parts:read",
    "generators": "twins = acmesched.parts:twins",
    "studies": "acme-figure = acmesched.study:Figure",
    "performance_models": "half-speed = acmesched.parts:half_speed\nslowed = acmesched.parts:slowed",
    "profile_readers": "slowed = acmesched.parts:slowdown",
    "placements": "last = acmesched.parts:Last",
    "fillings": "in-order = acmesched.parts:IN_ORDER",
    "executors": "slow = acmesched.parts:slow",
    "runners": "noted = acmesched.runner:Noted",
    "systems": "acmesched = acmesched.parts:SYSTEM",
}


def write_package(site: Path, name: str = "acmesched", **groups: str) -> None:
    """Write a package with its entry points, as pip does."""
    (site / name).mkdir()
    for module, text in {"__init__": "", "parts": PARTS, "study": STUDY, "runner": RUNNER}.items():
        (site / name / f"{module}.py").write_text(text)
    about = site / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(f"[gantline.{group}]\n{entry}\n" for group, entry in groups.items()))
