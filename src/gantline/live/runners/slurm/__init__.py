"""One allocation of a Slurm cluster as a runner: gangs are steps of it. `docs/slurm.md` says how to use it."""
