"""A population search over how many devices each job gets on which node, with two objectives (NSGA-II, as Pollux uses it)."""
