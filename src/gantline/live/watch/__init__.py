"""Snapshots of clusters that others schedule: read, never changed."""
