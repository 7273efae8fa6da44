"""How many examples a test draws whose examples cost more, or tell less, than most."""

from __future__ import annotations

from hypothesis import settings

FEWER = settings(max_examples=settings().max_examples // 3)
MORE = settings(max_examples=3 * settings().max_examples)
