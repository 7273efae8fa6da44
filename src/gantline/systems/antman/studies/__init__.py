"""Figures of AntMan made anew."""
