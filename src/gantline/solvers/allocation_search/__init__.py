"""A population search over who gets how many devices on which node, with two objectives (NSGA-II, as Pollux uses it)."""
