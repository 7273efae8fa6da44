"""Blox (EuroSys 2024): its policy that chooses policies, its clock, its workload and its figures."""
