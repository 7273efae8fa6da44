"""The routes, one file per noun; each has a `router`."""
