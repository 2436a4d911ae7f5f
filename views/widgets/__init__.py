"""Small widgets that every panel is made of."""
