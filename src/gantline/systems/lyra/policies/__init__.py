"""Lyra (Li et al., EuroSys 2023): servers on loan from an inference cluster, and elastic jobs that fill what is left."""
