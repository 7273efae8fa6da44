"""ElasticFlow's published simulator (ASPLOS 2023), rule by rule: for reproducing its numbers only."""
