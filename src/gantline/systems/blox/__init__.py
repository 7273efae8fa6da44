"""Blox (EuroSys 2024): its clock, its workload and its figures."""
