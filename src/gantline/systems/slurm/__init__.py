"""Slurm's own order: multifactor priority and backfill, so that a question about a Slurm cluster has Slurm as its present."""
