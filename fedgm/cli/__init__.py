"""The frame around the commands: how they are found, how they end, Ctrl-C while they are imported."""
