"""How time passes and what has been acknowledged: virtual time, orders and reports, faults."""
