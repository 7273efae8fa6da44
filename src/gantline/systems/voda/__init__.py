"""Voda's elastic schedulers (IC2E 2023)."""
