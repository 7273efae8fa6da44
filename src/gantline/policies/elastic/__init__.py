"""What policies for elastic jobs share: the sizes a job may have, how fast it is at each, and pools of devices to share out."""
