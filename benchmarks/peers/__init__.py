"""Other frameworks on the same work; they have a venv of their own: make bench-peers."""
