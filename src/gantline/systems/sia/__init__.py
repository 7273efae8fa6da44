"""Sia (SOSP 2023): goodput on several device types."""
