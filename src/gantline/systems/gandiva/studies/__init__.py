"""The experiments of the paper made anew."""
