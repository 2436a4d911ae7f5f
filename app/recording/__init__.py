"""``main.py record``: a program runs as it is, and what torch.compile did in it becomes a session."""
