"""How the runs of a sweep are made: here, in worker processes, or on a Ray cluster."""
