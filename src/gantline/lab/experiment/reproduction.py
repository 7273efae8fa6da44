"""A study: one published figure, the runs that should show it again, and the claims they are held against.

What a study is made of is imported from here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import polars as pl

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.experiment.charts import charts_of
from gantline.lab.experiment.grid import Case as Case
from gantline.lab.experiment.grid import Grid as Grid
from gantline.lab.experiment.grid import PolicyChoice as PolicyChoice
from gantline.lab.experiment.setting import Setting as Setting
from gantline.lab.experiment.sweep import Sweep as Sweep
from gantline.lab.experiment.trace_source import TraceSource as TraceSource
from gantline.lab.report.figures import Chart
from gantline.registry import Register

Scale = Literal["small", "full"]


WITHIN = 0.1  # of a published number, unless a study says otherwise


@dataclass(frozen=True)
class ClaimTerms:
    """What a claim is held against and how far off it may be: part of a study's definition, laid down before anything runs."""

    baseline: str
    tolerance: str


def claim_terms(laid_down: Mapping[str, tuple[str, str]]) -> Mapping[str, ClaimTerms]:
    """Claims by their statements: what each is held against, and how far off it may be."""
    return {statement: ClaimTerms(*terms) for statement, terms in laid_down.items()}


@dataclass(frozen=True)
class Claim:
    """One thing that the figure says: in words, as published, as found. Shapes and numbers are counted apart."""

    statement: str
    published: str
    found: str
    holds: bool
    is_number: bool = False
    baseline: str = ""
    tolerance: str = ""

    @staticmethod
    def number(statement: str, published: float, found: float, unit: str = "times", within: float = WITHIN) -> Claim:
        """A published number and the one found, which may differ by that part of it."""
        text = f"{found:.3g} {unit} ({100 * (found / published - 1):+.0f} %)"
        return Claim(statement, f"{published:g} {unit}", text, abs(found / published - 1) <= within, is_number=True)

    @property
    def kind(self) -> str:
        return "number" if self.is_number else "shape"

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

    terms: ClassVar[Mapping[str, ClaimTerms]]
    """Baseline and tolerance of every claim, by its statement; one that begins with a place ("philly: ...") goes by what follows."""
    number_terms: ClassVar[ClaimTerms] = ClaimTerms("the published number", f"{100 * WITHIN:g} %")
    """Those of numbers that `terms` does not name."""

    def __init__(self, data: Path | None = None) -> None:
        self.data = data

    def on_terms(self, claim: Claim) -> Claim:
        """The claim with the terms that were laid down for it; one without any is a mistake in the study."""
        terms = self.terms.get(claim.statement) or self.terms.get(claim.statement.partition(": ")[2])
        if terms is None:
            if not claim.is_number:
                raise ValueError(f"study '{self.name}' lays down no terms for the claim '{claim.statement}'")
            terms = self.number_terms
        return replace(claim, baseline=terms.baseline, tolerance=terms.tolerance)

    @property
    def ready(self) -> bool:
        """Whether what it needs is there."""
        return not self.needs or self._found() is not None

    def needed(self) -> Path:
        """The published file; where it is missing, the error says where it comes from."""
        found = self._found()
        if found is None:
            where = "no folder of published data is given" if self.data is None else f"'{self.needs}' is not under {self.data}"
            raise NotFoundError(
                where, where=f"reproduce {self.name}", fix=f"get {self.needs} from {self.needs_from}, and give --data FOLDER"
            )
        return found

    def file_of(self, name: str) -> Path:
        """A file that comes with the published one; where it is missing, where it should be."""
        path = self.needed()
        found = (file for folder in (path.parent, self.data or path.parent) for file in sorted(folder.rglob(name)))
        return next(found, path.with_name(name))

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
        return charts_of(sweep.results, self.load, self.load_unit)


def mean_table(results: pl.DataFrame, keys: Sequence[str], columns: Mapping[str, str]) -> pl.DataFrame:
    """Means of columns, under the names that they are given, by these keys in the order in which they come."""
    return results.group_by(keys, maintain_order=True).agg(pl.col(list(columns)).mean()).rename(columns)


def mean_by_policy(results: pl.DataFrame, index: str, value: str = "jct_mean") -> pl.DataFrame:
    """Means of a column: a row per place of the index, a column per policy."""
    means = results.group_by("policy", index).agg(pl.col(value).mean()).sort(index, "policy")
    return means.pivot("policy", index=index, values=value)


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
        said = verdict_of(self.claims, len(self.sweep.failures))
        if self.scale == "full" or self.sweep.failures:
            return said
        if not any(claim.is_number for claim in self.claims):
            said = said.replace("Reproduced:", "Reproduced in shape:")
        return f"{said[:-1]}, at small scale; how much and published numbers are judged at full scale."

    @property
    def shape_holds(self) -> bool:
        """Whether everything holds but, at most, numbers."""
        return not self.sweep.failures and all(claim.holds for claim in self.claims if not claim.is_number)


def judge(study: Study, sweep: Sweep, scale: Scale) -> Reproduction:
    """Read the results of the study's runs."""
    if sweep.failures:
        return Reproduction(study, scale, sweep, (), pl.DataFrame())
    results = study.read(sweep)
    return Reproduction(study, scale, sweep, tuple(study.on_terms(claim) for claim in study.claims(results, scale)), study.table(results))


def verdict_of(claims: Sequence[Claim], failures: int = 0) -> str:
    """The sum of all claims in words, shapes and numbers counted apart."""
    if failures:
        return f"No verdict: {failures} runs failed."
    counts = []
    for kind in ("shape", "number"):
        of_kind = [claim for claim in claims if claim.kind == kind]
        if of_kind:
            counts.append(f"{kind}{'s' * (kind == 'number')} {sum(claim.holds for claim in of_kind)} of {len(of_kind)}")
    if all(claim.holds for claim in claims):
        word = "Reproduced"
    else:
        word = "Reproduced in shape" if all(claim.holds for claim in claims if not claim.is_number) else "Not reproduced"
    return f"{word}: {', '.join(counts)}."


# Which figures can be reproduced: the studies that the manifests of published systems name.

_STUDIES = Register("studies", {}, where="reproduce")


def study_names() -> list[str]:
    """All studies, in the order in which they should be listed."""
    return _STUDIES.names()


def find_study(name: str, data: Path | None = None) -> Study:
    """The study of that name; ``data`` is the folder with published files that it may need."""
    if _STUDIES.find(name) is None:
        raise NotFoundError(f"no reproduction '{name}'", where="reproduce", fix=near(name, [*study_names(), "all"]))
    found = _STUDIES.load(name)
    if not (isinstance(found, type) and issubclass(found, Study)):
        raise UsageError(f"'{name}' is a {type(found).__name__}, not a study", where="reproduce", fix="derive it from Study")
    return found(data)


# Reproductions as Markdown: for a terminal, for the folder of the results, for the documentation.


def section(found: Reproduction) -> str:
    """One reproduction: paper, figure, what is run, claims, numbers, verdict."""
    study = found.study
    claims = pl.DataFrame(
        [
            {
                "claim": claim.statement,
                "kind": claim.kind,
                "against": claim.baseline,
                "tolerance": claim.tolerance,
                "published": claim.published,
                "found": claim.found,
                "verdict": claim.verdict,
            }
            for claim in found.claims
        ]
    )
    parts = [
        f"## {study.name}",
        f"{study.paper}. {study.figure}.",
        study.what
        if found.scale == "full"
        else f"{study.what} *Small scale: an excerpt of this in seconds. Differences may be much larger or "
        "smaller than at full scale, which docs/reproductions.md shows.*",
        f"**{found.verdict}**",
        markdown_table(claims),
        markdown_table(found.table),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _answer(found: Sequence[Reproduction]) -> str:
    """How many of the figures are reproduced, and which are not."""
    names: dict[str, list[str]] = {}
    for one in found:
        names.setdefault(one.verdict.partition(":")[0], []).append(one.study.name)
    whole, in_shape = (len(names.pop(verdict, ())) for verdict in ("Reproduced", "Reproduced in shape"))
    lines = [f"Of {len(found)} published figures {whole} are reproduced, and {in_shape} more in shape: their numbers differ."]
    return "\n".join([*lines, *(f"{verdict}: {', '.join(studies)}." for verdict, studies in names.items())])


def page(found: Sequence[Reproduction]) -> str:
    """The page of the documentation."""
    head = (
        f"# Reproductions\n\n{_answer(found)}\n\n"
        "A claim is either a shape (the order, where curves part) or a number, which is met within 10 % unless its study says otherwise;\n"
        "a figure counts as reproduced in shape when only numbers differ. What a claim is held against and how far off it may be is part\n"
        "of the study's definition.\n\n"
        "<!-- not run: it takes a quarter of an hour and writes into the documentation -->\n"
        "```console\n$ gantline reproduce all --scale full --data FOLDER --page docs/reproductions.md\n```\n\n"
        "writes this page, and `gantline reproduce NAME` runs one figure. Equal versions write equal pages. Some figures need files that\n"
        "their authors published and that are not ours to ship; `--data` names the folder they lie in, and where one is missing, the\n"
        "message says where it comes from.\n"
    )
    return "\n".join([head, *(section(one) for one in found)])


def markdown_table(frame: pl.DataFrame) -> str:
    """A frame as a Markdown table."""
    if frame.is_empty():
        return ""
    rows = [[_cell(name) for name in frame.columns], ["---:" if dtype.is_numeric() else "---" for dtype in frame.dtypes]]
    rows += [[_cell(value) for value in row] for row in frame.iter_rows()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, float):
        if value != value:
            return "–"
        return f"{value:g}" if abs(value) < 10 and value == round(value, 4) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return "–" if value is None else str(value).replace("|", "\\|")


# The elastic jobs and the cluster of several studies, and how their results are read.

RATE = "trace.jobs_per_hour"


def elastic_setting(*, rigid: bool = False, cluster: str = "gpu:8x8", **settings: Any) -> Setting:
    """150 elastic jobs on 64 GPUs by default; rigid ones are the same jobs at the size they ask for."""
    own = {**settings, **({"rigid": True} if rigid else {})}
    return Setting(TraceSource(generator="elastic", settings=own), cluster, "afs", round=60.0, costs="10")


def mean_by(results: pl.DataFrame, axis: str) -> dict[tuple[str, tuple[float, int]], float]:
    """Mean JCT by policy and (place on the axis, seed)."""
    rows = results.select("policy", axis, "seed", "jct_mean").iter_rows()
    return {(policy, (float(place), int(seed))): float(value) for policy, place, seed, value in rows}
