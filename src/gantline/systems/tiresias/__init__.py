"""Tiresias (NSDI 2019): queues by attained service."""
