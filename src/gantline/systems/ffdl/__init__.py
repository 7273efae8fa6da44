"""FfDL's elastic optimizer (MASCOTS 2020): sizes and batch sizes with the greatest sum of speedups."""
