"""The thread that owns the engine, and what is decided, requested, recorded and shown around it."""
