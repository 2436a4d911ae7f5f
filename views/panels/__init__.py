"""The other panels at the bottom, a file each: memory, roofline, timeline, graph breaks, messages."""
