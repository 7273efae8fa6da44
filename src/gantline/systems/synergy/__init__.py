"""Synergy (OSDI 2022): CPUs and memory go to the jobs that gain by them."""
