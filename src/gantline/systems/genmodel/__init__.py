"""GenModel and GenTree: what an AllReduce costs, and how servers under a tree of switches do it best (arXiv 2409.04202)."""
