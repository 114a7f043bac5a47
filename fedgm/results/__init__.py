"""Stored runs: one class, one walker, one score; tables and statistics of them."""
