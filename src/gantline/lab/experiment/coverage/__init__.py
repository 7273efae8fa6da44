"""How often verdicts, intervals and the overload guard are right: the measurements behind ``docs/coverage.md``."""
