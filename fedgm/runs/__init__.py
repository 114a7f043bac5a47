"""Stored runs at hand: list, show, compare, send to W&B, load the model."""
