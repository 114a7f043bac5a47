"""What a run leaves behind: its folder, rows, checkpoints, W&B record and curves."""
