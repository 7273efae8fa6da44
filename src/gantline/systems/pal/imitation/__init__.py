"""PAL's simulator (SC 2024), a fork of Blox: rounds, one slowdown per GPU and class, one locality penalty."""
