"""A study: one published figure, the runs that should show it again, and the claims they are held against."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import polars as pl

from gantline.core.errors import NotFoundError
from gantline.experiment.grid import Case
from gantline.experiment.sweep import Sweep
from gantline.report.figures import Chart

Scale = Literal["small", "full"]


@dataclass(frozen=True)
class Claim:
    """One thing that the figure says: in words, as published, as found. A number may differ where a shape may not."""

    statement: str
    published: str
    found: str
    holds: bool
    is_number: bool = False

    @property
    def verdict(self) -> str:
        """One word."""
        return "holds" if self.holds else "differs"


class Study(ABC):
    """A published figure. Subclasses say what to run at each scale and how to read the results."""

    name: ClassVar[str]
    paper: ClassVar[str]
    figure: ClassVar[str]
    what: ClassVar[str]
    """What is run, in a sentence or two; the differences to the original too."""
    load: ClassVar[str] = "load"
    load_unit: ClassVar[str] = ""
    needs: ClassVar[str] = ""
    """A published file that the runs need and that is not ours to ship."""
    needs_from: ClassVar[str] = ""

    def __init__(self, data: Path | None = None) -> None:
        self.data = data

    @property
    def ready(self) -> bool:
        """Whether what it needs is there."""
        return not self.needs or self._found() is not None

    def needed(self) -> Path:
        """The published file; who lacks it is told where it comes from."""
        found = self._found()
        if found is None:
            where = "no folder of published data is given" if self.data is None else f"'{self.needs}' is not under {self.data}"
            raise NotFoundError(
                where, where=f"reproduce {self.name}", fix=f"get {self.needs} from {self.needs_from}, and give --data FOLDER"
            )
        return found

    def _found(self) -> Path | None:
        return next(iter(sorted(self.data.rglob(self.needs))), None) if self.data is not None else None

    @abstractmethod
    def cases(self, scale: Scale) -> list[Case]:
        """The runs."""

    def read(self, sweep: Sweep) -> pl.DataFrame:
        """The results that claims, table and figure are about: a row per run, unless a study says otherwise."""
        return sweep.results.filter(pl.col("state") == "done")

    @abstractmethod
    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        """What the results say about the figure."""

    @abstractmethod
    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        """The numbers of the figure: first column what is on its axis."""

    def charts(self, sweep: Sweep) -> list[Chart]:
        """The figure drawn again."""
        from gantline.experiment.charts import charts_of

        return charts_of(sweep.results, self.load, self.load_unit)


@dataclass(frozen=True)
class Reproduction:
    """A study that has been run."""

    study: Study
    scale: Scale
    sweep: Sweep
    claims: tuple[Claim, ...]
    table: pl.DataFrame

    @property
    def verdict(self) -> str:
        """The outcome in words: a figure is its shape first, its numbers second."""
        return verdict_of(self.claims, len(self.sweep.failures))

    @property
    def shape_holds(self) -> bool:
        """Whether everything holds but, at most, numbers."""
        return not self.sweep.failures and all(claim.holds for claim in self.claims if not claim.is_number)


def judge(study: Study, sweep: Sweep, scale: Scale) -> Reproduction:
    """Read the results of the study's runs."""
    if sweep.failures:
        return Reproduction(study, scale, sweep, (), pl.DataFrame())
    results = study.read(sweep)
    return Reproduction(study, scale, sweep, tuple(study.claims(results, scale)), study.table(results))


def verdict_of(claims: Sequence[Claim], failures: int = 0) -> str:
    """The sum of all claims in words."""
    if failures:
        return f"No verdict: {failures} runs failed."
    shapes = [claim for claim in claims if not claim.is_number]
    numbers = [claim for claim in claims if claim.is_number]
    held = sum(claim.holds for claim in claims)
    if held == len(claims):
        return f"Reproduced: all {len(claims)} claims hold."
    if all(claim.holds for claim in shapes):
        off = sum(not claim.holds for claim in numbers)
        return f"Reproduced in shape: {held} of {len(claims)} claims hold, {off} number{'s' * (off > 1)} differ{'s' * (off == 1)}."
    return f"Not reproduced: {held} of {len(claims)} claims hold."
