"""Themis (NSDI 2020): finish-time fairness by auctions."""
