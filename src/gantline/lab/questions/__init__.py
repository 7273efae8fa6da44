"""Questions that only a scheduler with a simulator inside can answer: why does a job wait, when will it start, what if."""

from gantline.lab.questions.explain import Explanation, explain
from gantline.lab.questions.forecast import Forecast, forecast
from gantline.lab.questions.what_if import WhatIf, what_if
from gantline.models.uncertainty import Uncertainty

__all__ = ["Explanation", "Forecast", "Uncertainty", "WhatIf", "explain", "forecast", "what_if"]
