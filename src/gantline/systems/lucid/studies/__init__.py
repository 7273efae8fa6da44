"""What Lucid's runs are held against as named reproductions."""
