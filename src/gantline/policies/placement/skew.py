"""How unevenly a model's parameters sit in its tensors: the placement sensitivity of Tiresias (NSDI 2019, section 3.3).

The measure is the largest tensor over the model's size; four of the ten models of the paper exceed one half and suffer when spread.
"""

from __future__ import annotations

USUAL_LIMIT = 0.5
MODEL_SKEW = {
    "vgg11": 0.773,
    "vgg16": 0.743,
    "vgg19": 0.715,
    "alexnet": 0.610,
    "googlenet": 0.146,
    "resnet50": 0.092,
    "inception3": 0.086,
    "resnet101": 0.053,
    "resnet152": 0.039,
    "inception4": 0.036,
}


def is_sensitive(model: str, limit: float) -> bool:
    """Whether a model should be consolidated; unmeasured models are taken as insensitive."""
    return MODEL_SKEW.get(model.lower(), 0.0) > limit
