"""Muri's simulator (SIGCOMM 2022), a fork of Tiresias': groups that interleave, and the schedulers that it is compared with."""
