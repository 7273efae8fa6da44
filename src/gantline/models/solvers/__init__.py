"""Solvers that several families share: pure functions of their instance, never of a solver's history."""
