"""AlloX (EuroSys 2020): jobs for a CPU or a GPU, matched; and IRFsim, its simulator."""
