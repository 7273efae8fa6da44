"""Synergy's simulator (OSDI 2022): rounds in which every allocation is made afresh, and a finish is seen at the end of its round.

Its rules are in docs/policies/synergy.md.
"""

from gantline.engine.regime import Regime

REGIME = Regime(name="synergy", round=300.0, finish_at_boundary=True, profiles=True)
