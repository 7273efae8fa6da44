"""What is read at the border: clusters, node events, policies, prices, throughputs."""
