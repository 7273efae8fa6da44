"""The policy, and what it is made of."""
