"""The real TorchInductor, seen through the same report as our own compiler."""
