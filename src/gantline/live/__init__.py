"""The second clock: the same engine on wall time, with a durable store and real processes."""
