"""Datasets, their split over clients, and the batches that clients see."""
