"""Commands that speak to a live service. They need the libraries of the extra `live`; help does not."""
