"""What IRFsim, the simulator published with AlloX, does where it differs from the paper: for reproducing its numbers only."""
