"""Filling a cluster with pods that never leave: how much of the GPUs is in use when so much has been asked for."""
