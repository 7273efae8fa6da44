"""Lyra (EuroSys 2023): inference machines lent to training."""
