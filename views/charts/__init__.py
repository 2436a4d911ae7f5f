"""Charts painted by ourselves: scales, axes, and a widget that shows and exports them."""
