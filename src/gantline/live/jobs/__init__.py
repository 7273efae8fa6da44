"""What a job is: its specification, and how it is launched."""
