"""The reports that are open: tabs, files, logs of torch, what was used lately."""
