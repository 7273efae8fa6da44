"""What decides: pure, as every policy is."""
