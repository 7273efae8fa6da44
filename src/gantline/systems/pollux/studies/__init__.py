"""Reproductions of published figures."""
