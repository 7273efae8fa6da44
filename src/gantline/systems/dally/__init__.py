"""Dally (arXiv 2401.16492): jobs wait a tuned time for machines that are near each other."""
