"""Goodput (Pollux, OSDI 2021): throughput times statistical efficiency, as measured and as fitted while a job runs."""
