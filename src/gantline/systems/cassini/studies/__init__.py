"""Studies of CASSINI."""
