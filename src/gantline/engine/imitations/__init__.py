"""Imitations of published simulators, where results must equal theirs and no regime can express the difference."""
