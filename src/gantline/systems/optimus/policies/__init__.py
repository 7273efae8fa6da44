"""Optimus (Peng et al., EuroSys 2018): marginal gains over sizes, or over parameter servers and workers; and DRF beside it."""
