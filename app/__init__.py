"""What is neither compiler nor window: command line, sources, worker, session file, graph layout."""
