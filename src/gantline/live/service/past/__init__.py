"""The past of a service or of a stored run, by windows of time: devices as a picture, queue and shares as lines."""
