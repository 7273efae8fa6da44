"""The board: jobs and devices as columns with a version, and the differences between two versions."""
