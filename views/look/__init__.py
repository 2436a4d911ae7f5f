"""How everything looks: the theme's colours, the stylesheet, icons, fonts, and figures as text."""
