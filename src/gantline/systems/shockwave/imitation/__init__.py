"""Shockwave's simulator (NSDI 2023): Gavel's rounds on one device type, with jobs whose batch size grows in mid-run."""
