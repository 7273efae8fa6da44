"""ElasticFlow (Gu et al., ASPLOS 2023): deadlines kept by admission, reservations and elastic sizes."""
