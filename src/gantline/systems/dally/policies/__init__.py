"""Heet-like: elastic jobs on several device types by estimated speeds, prices, matching and trading (after Heet, ASPLOS 2024)."""
