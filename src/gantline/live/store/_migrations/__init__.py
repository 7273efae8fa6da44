"""How older stores become newer ones."""
