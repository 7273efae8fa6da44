"""How time passes and what has been acknowledged: in virtual time, by orders and reports, with faults."""
