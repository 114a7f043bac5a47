"""What a process sets up before its first tensor: which packages it loads, and how it keeps its memory."""
