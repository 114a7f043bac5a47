"""Many runs: Hydra's multirun and sweep files."""
