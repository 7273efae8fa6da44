"""Which GPUs of a server, by the links between them: rings, cliques and stars on link graphs (MAPA, SC 2021)."""
