"""Files that ship with Fusescope: icons, themes, example models, sample sessions."""
