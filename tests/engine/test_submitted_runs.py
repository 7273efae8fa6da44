"""A run whose jobs are all submitted as values is the run whose jobs stand in a file, byte for byte, and its journal folds to it again."""

from __future__ import annotations
