"""The frame of the window: menus, toolbar, docks, the workspace of a report, messages, dialogs, the first page."""
