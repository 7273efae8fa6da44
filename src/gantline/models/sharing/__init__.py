"""Jobs that share devices: measured pairs, throughput tables, and models of how such jobs slow each other down."""
