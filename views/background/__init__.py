"""Work that must not stop the window: jobs off the GUI thread, steps between frames, what waits until it is seen."""
