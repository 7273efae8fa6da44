"""Tuning: the parameters of a policy that serve some workloads best, and whether that holds for workloads the search has not seen."""
