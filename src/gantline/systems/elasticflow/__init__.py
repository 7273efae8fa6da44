"""ElasticFlow (ASPLOS 2023): elastic jobs with deadlines."""
