"""A Ray cluster as a runner: keepers are actors, gangs are placement groups. `README.md` has the picture."""
