"""What the policies of a sweep knew that nobody knows on a real cluster: how long jobs take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantline.lab.experiment.history import NAME
from gantline.models.estimate_chain import find_estimates

if TYPE_CHECKING:
    from gantline.lab.experiment.sweep_runs import SweepRuns


def truth_known(sweep: SweepRuns) -> list[str]:
    """A sentence where policies knew how long jobs take, which is unknown on a real cluster."""
    choices = {case.policy: case.setting for case in sweep.cases if case.policy != NAME}
    oracle = {name: one for name, one in choices.items() if find_estimates(str(one.estimates)).mode == "oracle"}
    names = ", ".join(name for name, one in oracle.items() if "remaining" in one.make_policy().needs)
    less = "with --estimates history (or limit, where jobs have time limits) it would know less"
    return [f"{names} knew how long each job really takes; {less}."] if names else []
