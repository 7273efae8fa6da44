"""How the learning rate follows the batch: the rules that training loops use (`gantline.train.rates`), by name."""

from __future__ import annotations

from gantline.core.errors import NotFoundError, near
from gantline.train.rates import RULES, BatchState

__all__ = ["RULES", "BatchState", "rate_factor"]


def rate_factor(rule: str, state: BatchState) -> float:
    """By what to multiply the learning rate that was chosen for the first batch."""
    if rule not in RULES:
        raise NotFoundError(f"no learning-rate rule '{rule}'", fix=near(rule, RULES))
    return RULES[rule](state)
