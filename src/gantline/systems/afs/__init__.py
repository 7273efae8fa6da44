"""AFS (NSDI 2021): one step at a time to the job in which it does most good."""
