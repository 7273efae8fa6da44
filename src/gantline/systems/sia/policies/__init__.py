"""Sia (SOSP 2023): which configuration of GPU type, nodes and GPUs each job gets, by an integer program over goodputs."""
