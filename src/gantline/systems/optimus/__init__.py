"""Optimus (EuroSys 2018): parameter servers and workers by marginal gain."""
