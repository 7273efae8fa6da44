"""GAIA's simulator (ASPLOS 2024): when to start a batch job so that it emits or costs less."""
