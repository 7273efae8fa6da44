"""Voda's eight elastic schedulers (Hsieh and Lee, IC2E 2023)."""
