"""Slurm's order as a policy."""
