"""GAIA (ASPLOS 2024): jobs wait for a clean grid."""
