"""The scheduler over HTTP: who may do what, and the same for Python and the command line."""
