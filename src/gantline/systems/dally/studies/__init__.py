"""Published figures made anew."""
