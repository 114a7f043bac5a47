"""Pictures: what the momentum family does."""
