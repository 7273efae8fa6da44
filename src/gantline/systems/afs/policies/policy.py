"""`afs`: elastic sharing by what one more step would save (AFS, NSDI 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.takes import about
from gantline.policies.elastic.policies import SharesOut
from gantline.policies.elastic.pools import Pool
from gantline.systems.afs.policies.apathetic import apathetic_shares


@dataclass(frozen=True)
class Afs(SharesOut):
    """Apathetic future share: one step at a time to the job in which it does most good, hoping for nothing later."""

    name: ClassVar[str] = "afs"
    paper: ClassVar[str] = "Hwang et al.: Elastic Resource Sharing for Distributed Deep Learning (NSDI 2021)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    lengths: str = field(
        default="known",
        metadata=about(
            "'known': estimated (AFS-L); 'unknown': the longest-running is taken to have most left (AFS-P)", one_of=("known", "unknown")
        ),
    )

    def share(self, pool: Pool) -> Ints:
        left = pool.remaining if self.lengths == "known" else _guessed(pool)
        return apathetic_shares(pool.curves, left, pool.capacity)


def _guessed(pool: Pool) -> Floats:
    """As much left as was done so far, in seconds on one worker: what a heavy tail of lengths suggests."""
    done: Floats = pool.of(pool.snapshot.jobs.done) / pool.curves.unit
    return np.maximum(done, 1.0)
