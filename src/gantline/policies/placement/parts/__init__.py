"""Parts of GPUs: the fragments of a node, and six rules by which a pod finds its node and its device (Weng et al., ATC 2023)."""
