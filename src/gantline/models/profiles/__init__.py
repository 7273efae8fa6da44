"""Profiles that short runs of real jobs have given, what is estimated from them, and a performance model made of them."""
