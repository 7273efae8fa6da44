"""Gavel (Narayanan et al., OSDI 2020): heterogeneity-aware scheduling as optimisation over shares of time.

The functions of this package are pure: an :class:`Instance` goes in, an :class:`Allocation` comes out. See README.md.
"""
