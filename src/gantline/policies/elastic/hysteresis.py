"""Growth that does not pay for itself is left out: a job keeps its size if what it would save is less than what the change costs.

AFS (Hwang et al., NSDI 2021) and Elastic-Tiresias (Wu et al., TPDS 2022) share out anew at every event; on a real cluster each change
stops the job for a while. Shrinking is never declined, since others have been given what it frees.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.policies.elastic.pools import Pool


def worth_it(pool: Pool, grants: Ints, cost: float) -> Ints:
    """The same sizes, but for running jobs whose growth would save them less than `cost` seconds: these stay as they are."""
    if cost <= 0.0 or not len(pool):
        return grants
    curves, held = pool.curves, np.where(pool.of(pool.snapshot.jobs.running), pool.of(pool.snapshot.jobs.held), 0)
    here, there = curves.entry_of(held), curves.entry_of(grants)
    grows = (held > 0) & (grants > held) & (here >= 0)
    if not grows.any():
        return grants
    left = pool.of(pool.snapshot.jobs.remaining)
    saved = left * (1.0 / curves.rate[np.maximum(here, 0)] - 1.0 / curves.rate[np.maximum(there, 0)])
    return np.where(grows & (saved < cost), held, grants)
