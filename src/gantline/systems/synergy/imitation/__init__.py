"""Synergy's simulator, job by job."""
