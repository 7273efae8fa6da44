"""A policy after Heet (ASPLOS 2024), of which only the outline is public."""
