"""PAL (SC 2024): devices of one type that differ in speed."""
