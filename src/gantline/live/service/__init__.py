"""The scheduler over HTTP: routes, roles and tokens, and the client for Python and the command line."""
