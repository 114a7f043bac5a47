"""Pictures: what the momentum family does, and what a sweep shows."""
