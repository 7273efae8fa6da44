"""Muri (SIGCOMM 2022): jobs whose bottlenecks differ take turns on the same GPUs, stage by stage."""
