"""What carries out the orders of a service: one protocol, and the runners of this machine, Kubernetes, Ray and Slurm."""
