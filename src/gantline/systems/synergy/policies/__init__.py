"""Synergy (Mohan et al., OSDI 2022): an order of jobs, and CPUs and memory divided by what each gains from them."""
