"""Chores of this repository: pages of docs/ that are made from stored results."""
