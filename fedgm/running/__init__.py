"""One run: its parts, its folder, rows, checkpoints and loggers, and how it ends."""
