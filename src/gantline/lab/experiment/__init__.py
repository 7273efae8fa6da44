"""Many runs: settings, sweeps, comparisons, saturation, and reproductions of published figures."""
