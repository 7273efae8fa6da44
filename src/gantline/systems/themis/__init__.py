"""Themis (NSDI 2020): auctions for finish-time fairness."""
