"""Short runs of jobs by which their speeds are measured."""
