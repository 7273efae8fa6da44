"""Questions to a policy that is a key which cannot be read: what are the keys of all jobs now, and until when does that order hold?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.python_keys.hint import Within, time_said
from gantline.engine.state import State


class Questions:
    """One policy, asked about all active jobs at every decision."""

    def __init__(self, policy: OrderPolicy, state: State, within: Within) -> None:
        self._policy, self._state, self._within = policy, state, within
        self.says_until = type(policy).valid_until is not OrderPolicy.valid_until

    def ask(self) -> tuple[Floats, float] | None:
        """The keys in order of arrival, and when the order might change although nothing happens (NaN: it does not say).

        None: neither is one. Then the policy is asked for a whole plan, which reports its mistake.
        """
        snapshot, count = self._state.snapshot(), len(self._state.rows)
        try:
            said, until = self._within(lambda: self._answer(snapshot))
            keys = np.asarray(said, dtype=np.float64)
            return (keys, math.nan if until is None else until) if keys.shape == (count,) else None
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None

    def _answer(self, snapshot: Snapshot) -> tuple[Any, float | None]:
        return self._policy.key(snapshot), time_said(self._policy.valid_until(snapshot)) if self.says_until else None
