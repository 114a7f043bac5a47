"""What a client sends instead of its whole delta: functions on flat tensors, and the bytes they cost."""
