"""AntMan (OSDI 2020): guests in the gaps of guaranteed jobs, which do not notice them."""
