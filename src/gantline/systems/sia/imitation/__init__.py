"""The simulator published with Sia (SOSP 2023): rounds of a minute, jobs that choose their own batch, models fitted while they run."""
