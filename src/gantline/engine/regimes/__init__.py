"""Ways of counting time, one small file each."""
