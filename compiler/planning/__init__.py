"""Groups as steps: which are launched together, in what order, on which stream, in whose memory."""
