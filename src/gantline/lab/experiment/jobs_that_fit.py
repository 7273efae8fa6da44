"""Jobs that a cluster can never run, found before a comparison of clusters: each run would end with the same mistake."""

from __future__ import annotations

from collections.abc import Sequence

from gantline.core.errors import TraceError
from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.setting import Setting


def check_jobs_fit(cases: Sequence[Case]) -> None:
    """Refuse once what all runs on some of the clusters would refuse. Jobs of the first seed are looked at, as the simulator does."""
    if any(_changes_jobs(case.setting) for case in cases):
        return  # which jobs there are, and what they ask for, differs from run to run
    clusters: dict[str, Setting] = {}
    for case in cases:
        clusters.setdefault(str(case.axes["cluster"]), case.setting)
    found = {name: error for name, setting in clusters.items() if (error := _mistake(setting)) is not None}
    if found:
        raise _together(found)


def _changes_jobs(setting: Setting) -> bool:
    return bool(setting.profiles) or setting.make_policy().keeps_reservations


def _mistake(setting: Setting) -> TraceError | None:
    """The mistake with which a run of this setting would end, where it is one of the jobs on this cluster."""
    from gantline.engine.assembly.load import load_tables
    from gantline.engine.regime import find_regime
    from gantline.traces.files.clusters import read_cluster

    trace = setting.trace.with_throughputs(setting.named_files().get("throughputs", "")).load(setting.seed)
    try:
        load_tables(trace, read_cluster(setting.cluster), sizes_bind=find_regime(str(setting.regime)).sizes_bind)
    except TraceError as error:
        return error
    return None


def _together(found: dict[str, TraceError]) -> TraceError:
    """One mistake that names the job, the trace and every cluster; where clusters fail by other jobs, each of these."""
    first = next(iter(found.values()))
    alike = [name for name, error in found.items() if (error.line, error.field) == (first.line, first.field)]
    others = [error.what for name, error in found.items() if name not in alike]
    nor = f", nor on {', '.join(map(repr, alike[1:]))}" if alike[1:] else ""
    return TraceError("; ".join([first.what + nor, *others]), file=first.file, line=first.line, field=first.field, fix=first.fix)
