"""``gantline reproduce NAME``: a published figure, run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.console import Form, Sheet, say, show
from gantline.cli.run_options import HERE, Backends

if TYPE_CHECKING:
    from gantline.lab.experiment.reproduce.study import Reproduction, Study

Data = Annotated[
    Path | None,
    Parameter(env_var="GANTLINE_DATA", help="A folder with published files that a study needs (also: the variable GANTLINE_DATA)."),
]

app = App(
    name="reproduce",
    help_epilogue="""Examples:

  gantline reproduce list
  gantline reproduce blox-fig6 --scale full -o blox-fig6
  gantline reproduce gavel-single --data gavel/simulator""",
)


@app.command(name="list")
def list_studies(*, output: Form = "table") -> None:
    """List the figures that can be reproduced."""
    from gantline.lab.experiment.reproduce.registry import find_study, study_names

    studies = [find_study(name) for name in study_names()]
    show(Sheet.of("name figure paper", [(study.name, study.figure, study.paper) for study in studies]), output)


@app.default
def reproduce(
    name: Annotated[str, Parameter(help="A name from 'gantline reproduce list', or 'all'.")],
    /,
    *,
    scale: Annotated[Literal["small", "full"], Parameter(help="An excerpt in seconds, or everything in minutes.")] = "small",
    out: Annotated[Path | None, Parameter(name=["--out", "-o"], help="Keep runs, claims, numbers and figures in this folder.")] = None,
    page: Annotated[Path | None, Parameter(help="Write all verdicts as one Markdown page.")] = None,
    data: Data = None,
    where: Backends = HERE,
) -> int:
    """Run a published figure again; the exit code is 1 if its shape is not found."""
    from gantline.cli.sweeping import kept_or_not
    from gantline.lab.experiment.reproduce.page import page as page_of
    from gantline.lab.experiment.reproduce.page import section
    from gantline.lab.experiment.reproduce.registry import find_study, study_names
    from gantline.lab.experiment.whole_files import write_text

    found = []
    with kept_or_not(out) as folder:
        for one in study_names() if name == "all" else [name]:
            study = find_study(one, data)
            if name == "all" and not study.ready:
                say(f"left out: {one} needs {study.needs} (--data FOLDER)")
                continue
            found.append(_run(study, scale, folder / one if name == "all" else folder, where, keep=out is not None))
            print(section(found[-1]))
    if page is not None:
        write_text(page, page_of(found))
        say(f"wrote {page}")
    return 0 if all(one.shape_holds for one in found) else 1


def _run(study: Study, scale: Literal["small", "full"], folder: Path, where: Backends, *, keep: bool) -> Reproduction:
    import polars as pl

    from gantline.cli.sweeping import report_failures, run_watched, write_figures
    from gantline.lab.experiment.reproduce.page import section
    from gantline.lab.experiment.reproduce.study import judge
    from gantline.lab.experiment.whole_files import write_frame, write_text

    sweep = run_watched(study.cases(scale), folder, where)
    report_failures(sweep)
    found = judge(study, sweep, scale)
    if keep:
        write_frame(folder / "claims.parquet", pl.DataFrame([vars(claim) for claim in found.claims]))
        write_frame(folder / "table.parquet", found.table)
        write_text(folder / "report.md", section(found))
        write_figures(study.charts(sweep), folder / "figures")
    return found
