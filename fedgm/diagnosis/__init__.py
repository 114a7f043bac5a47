"""What Theorems 1-3 say about a configuration or about a run."""
