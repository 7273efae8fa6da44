"""Named reproductions of published figures: what is run, what was found, what was published, and a verdict."""
