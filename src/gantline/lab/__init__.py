"""Experiments, questions, reports, conformance and the learning environment."""
