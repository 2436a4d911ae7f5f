"""Tables of plain records: sorted, painted, copied and exported the same way everywhere."""
