"""Named reproductions of published figures: what is run, what was found, what was published, and a verdict.

What a study is made of is imported from here.
"""

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduce.study import WITHIN, Claim, ClaimTerms, Scale, Study, claim_terms, mean_by_policy, mean_table
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.source import TraceSource
from gantline.lab.experiment.sweep import Sweep

__all__ = [
    "WITHIN", "Case", "Claim", "ClaimTerms", "Grid", "PolicyChoice", "Scale", "Setting", "Study", "Sweep", "TraceSource", "claim_terms",
    "mean_by_policy", "mean_table",
]  # fmt: skip
