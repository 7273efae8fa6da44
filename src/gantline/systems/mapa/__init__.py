"""MAPA: gangs on GPUs that are well connected (Ranganath et al., SC 2021)."""
