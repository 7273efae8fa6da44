"""The second clock: the same engine on wall time, with a store below it and real processes in its hands."""
