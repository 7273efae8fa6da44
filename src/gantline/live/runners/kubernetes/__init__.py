"""Gantline as the scheduler of a Kubernetes cluster: gangs of pods, bound to nodes all or nothing."""
