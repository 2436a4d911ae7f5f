"""The worker process and how the app talks to it."""
