"""Other people's simulators, where results must equal theirs and no regime can say it."""
