"""A W&B sweep file, run without server or account: points, processes, halving, winners."""
