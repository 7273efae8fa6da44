"""AlloX: interchangeable resources, min-cost matching and fairness between users (EuroSys 2020)."""
