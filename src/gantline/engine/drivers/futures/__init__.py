"""Many futures of one instant, counting devices: see `loop`."""
