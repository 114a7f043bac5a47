"""Many runs: sweeps and figures, their points and winners, the claims and their verdicts."""
