"""Measurements, always as ratios taken side by side in one run: python -m benchmarks.against_bare."""
