"""Which profiles jobs run by: those that were given, else the made-up ones, if they have what the jobs train."""

from __future__ import annotations

from gantline.core.errors import UsageError
from gantline.engine.drivers.simulation import Simulation
from gantline.models.goodput.measured import Profiles
from gantline.traces.files.profiles import example_profiles
from gantline.traces.trace import Trace


def profiles_of(simulation: Simulation, trace: Trace, where: str) -> Profiles:
    """The profiles of a run; a trace with networks that have no profile is refused."""
    if isinstance(simulation.profiles, Profiles):
        return simulation.profiles
    made_up = example_profiles()
    named = [trace.frame[column].to_list() for column in ("app", "model") if column in trace.frame.columns]
    for names in zip(*named) if named else [("",)] * len(trace.frame):
        if not any(name in made_up.applications for name in names):
            what = next((f" of '{name}'" for name in names if name), "")
            fix = f"give --profiles DIR, a folder per application; only {' and '.join(sorted(made_up.applications))}, made up, are built in"
            raise UsageError(f"needs measured profiles{what}", where=where, fix=fix)
    return made_up


def profiles_summary(simulation: Simulation) -> dict[str, str]:
    """What the summary says of them."""
    return {"profiles": "made up"} if simulation.profiles is None else {}
