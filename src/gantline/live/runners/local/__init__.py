"""This machine as an executor: its devices, and a keeper process for each incarnation of a job."""
